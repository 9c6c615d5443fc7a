import { inTransaction } from "../../db/in-transaction.ts";
import { insertAccount } from "../../db/queries/accounts.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
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
  const at = deps.now();
  const id = newId("acct", at);
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
