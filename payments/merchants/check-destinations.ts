import { parseAccountId } from "../../chains/caip.ts";
import { withCallPriority } from "../../chains/call-priority.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { hasMerchant } from "../../db/queries/merchants.ts";
import { screenAccounts } from "../../transfers/screen-accounts.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { findAdditionRefusal, findDestinationToChange } from "./destinations.ts";
import type { Owner } from "./merchants.ts";
import type { Destination } from "./validate-destinations.ts";

type Deps = Pick<PaymentDeps, "db" | "networks" | "chains" | "screeningList" | "metrics">;

/**
 * Checks destinations before the transaction that adds them, because screening calls an endpoint. Refuses like
 * `findAdditionRefusal`, and with `params_validation` naming the first entry that screening rejects. Throws `ChainError`
 * when a chain cannot be read.
 */
export async function checkAdditions(
  deps: Deps,
  args: Owner & { merchantId: string; settlements: readonly Destination[] },
): Promise<Result<undefined>> {
  const refusal = await findAdditionRefusal(deps, args);
  if (refusal) return refusal;
  const unserved = await findUnserved(
    deps,
    args,
    args.settlements.map(({ destination }) => destination),
  );
  if (unserved === undefined) return done(undefined);
  return refuse("params_validation", `settlements.${unserved}.destination: the account is not served`);
}

/**
 * Checks a changed destination before the transaction that changes it. Refuses with `merchant_not_found`, and with
 * `params_validation` an account that is invalid or that screening rejects. Throws like `checkAdditions`.
 */
export async function checkChange(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; destination: string },
): Promise<Result<undefined>> {
  if (!(await hasMerchant(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const found = await findDestinationToChange(deps, args);
  if (!found.ok) return found;
  if ((await findUnserved(deps, args, [args.destination])) === undefined) return done(undefined);
  return refuse("params_validation", "destination: the account is not served");
}

/**
 * Returns the index of the first account that screening rejects, if any. Screens live mode only, by one call for each
 * chain, which gives way to the calls of payments.
 */
async function findUnserved(
  deps: Deps,
  { mode }: Pick<Owner, "mode">,
  destinations: readonly string[],
): Promise<number | undefined> {
  if (mode === "test") return undefined;
  const accounts = destinations.flatMap((destination, index) => {
    const account = parseAccountId(destination);
    const chain = deps.chains.get(account?.chain ?? "");
    return account && chain ? [{ index, chain, address: canonicalAddress(chain.chain, account.address) }] : [];
  });
  const rejected = [...Map.groupBy(accounts, ({ chain }) => chain)].map(async ([chain, here]) => {
    const addresses = [...new Set(here.map(({ address }) => address))];
    const refused = await withCallPriority("convenience", () => screenAccounts(deps, chain, addresses));
    return here.filter(({ address }) => refused.has(address)).map(({ index }) => index);
  });
  const indexes = (await Promise.all(rejected)).flat();
  return indexes.length > 0 ? Math.min(...indexes) : undefined;
}
