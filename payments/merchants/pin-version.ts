import { inTransaction } from "../../db/in-transaction.ts";
import { findAccountForUpdate, raiseApiVersion } from "../../db/queries/accounts.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Supported API versions, oldest first. Why they behave alike: docs/decisions/contract-versions.md. */
export const versions = ["2026-02-18", "2026-02-19.preview", "2026-02-19"] as const;

/** Pins an account to a newer stable version. Refuses with `unknown_api_version` and `api_version_downgrade`. */
export async function pinVersion(
  deps: Pick<PaymentDeps, "db" | "now">,
  args: { actor: AuditActor; accountId: string; version: string },
): Promise<Result<{ version: string }>> {
  const stable = versions.filter((version) => !version.endsWith(".preview"));
  if (!stable.some((version) => version === args.version))
    return refuse("unknown_api_version", `version: expected one of ${stable.join(", ")}`);
  const { actor, accountId: subject, version } = args;
  return inTransaction(deps.db, async (db) => {
    const before = await findAccountForUpdate(db, subject);
    if (!before || !(await raiseApiVersion(db, args)))
      return refuse("api_version_downgrade", "version: the account does not exist, or is pinned to a newer version");
    const entry = { actor, action: "account.version_pinned", subject, at: deps.now() };
    await insertAuditEntries(db, [{ ...entry, before: { version: before.api_version }, after: { version } }]);
    return done({ version });
  });
}
