import { raiseApiVersion } from "../../db/queries/accounts.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Supported API versions, oldest first. Why they behave alike: docs/decisions/contract-versions.md. */
export const versions = ["2026-02-18", "2026-02-19.preview", "2026-02-19"] as const;

/** Pins an account to a newer stable version. Refuses with `unknown_api_version` and `api_version_downgrade`. */
export async function pinVersion(
  deps: Pick<PaymentDeps, "db">,
  args: { accountId: string; version: string },
): Promise<Result<{ version: string }>> {
  const stable = versions.filter((version) => !version.endsWith(".preview"));
  if (!stable.some((version) => version === args.version))
    return refuse("unknown_api_version", `version: expected one of ${stable.join(", ")}`);
  if (await raiseApiVersion(deps.db, args)) return done({ version: args.version });
  return refuse("api_version_downgrade", "version: the account does not exist, or is pinned to a newer version");
}
