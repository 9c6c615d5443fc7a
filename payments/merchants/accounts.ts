import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import { insertAccount } from "../../db/queries/accounts.ts";
import { insertAppId } from "../../db/queries/app-ids.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import type { Mode } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * Creates an account.
 * @param args.destinationWaitingHours how long changes of its merchants' destinations wait; 72 by default
 */
export async function createAccount(
  deps: Deps,
  args: { actor: AuditActor; name: string; destinationWaitingHours?: number },
): Promise<{ id: string }> {
  const { actor, name, destinationWaitingHours: hours } = args;
  const id = newId("acct");
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    await insertAccount(db, {
      id,
      name,
      created_at: at,
      ...(hours === undefined ? {} : { destination_waiting_hours: hours }),
    });
    await insertAuditEntries(db, [
      { actor, action: "account.created", subject: id, before: null, after: { name }, at },
    ]);
  });
  return { id };
}

/** Creates a public app id for wallets. It grants access to the gateway only. */
export async function createAppId(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; mode: Mode },
): Promise<{ appId: string }> {
  const appId = randomBytes(16).toString("hex");
  const { actor, accountId: account, mode } = args;
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    await insertAppId(db, { id: appId, account_id: account, mode, created_at: at, revoked_at: null });
    const after = { account, mode };
    await insertAuditEntries(db, [{ actor, action: "app_id.created", subject: appId, before: null, after, at }]);
  });
  return { appId };
}
