import { randomBytes } from "node:crypto";
import { insertAccount } from "../../db/queries/accounts.ts";
import { insertAppId } from "../../db/queries/app-ids.ts";
import type { Mode } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/** Creates an account. */
export async function createAccount(deps: Deps, args: { name: string }): Promise<{ id: string }> {
  const id = newId("acct");
  await insertAccount(deps.db, { id, name: args.name, created_at: deps.now() });
  return { id };
}

/** Creates a public app id for wallets. It grants access to the gateway only. */
export async function createAppId(deps: Deps, args: { accountId: string; mode: Mode }): Promise<{ appId: string }> {
  const appId = randomBytes(16).toString("hex");
  const { accountId: account_id, mode } = args;
  await insertAppId(deps.db, { id: appId, account_id, mode, created_at: deps.now(), revoked_at: null });
  return { appId };
}
