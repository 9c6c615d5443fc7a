import { getChain } from "../../chains/open-chains.ts";
import { listUnclaimedNumbers } from "../../db/queries/observations.ts";
import { listOpenNumbers, type SettlementRow } from "../../db/queries/settlements.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { groupByBalance } from "./group-by-balance.ts";
import { type CatchUpDeps, chainOf, settlementNonce } from "./sign-payout.ts";

type Settlement = Pick<SettlementRow, "id" | "merchant_id" | "asset">;

/**
 * Returns the settlements that must not begin yet, because the chain shows a payout of the same merchant and asset that
 * a restored database does not know. That payout may have paid these settlements. They continue once it is adopted.
 */
export async function listBlockedByForgottenPayouts(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks"> & CatchUpDeps,
  settlements: readonly Settlement[],
): Promise<Set<string>> {
  const behind = new Set<string>();
  for (const [chain, all] of Map.groupBy(settlements, ({ asset }) => chainOf(asset))) {
    const { treasury } = getChain(deps.chains, chain);
    const made = await listUnclaimedNumbers(deps.db, { chain, payer: treasury });
    if (made.size === 0) continue;
    const groups = groupByBalance(all, ({ merchant_id: merchantId, asset }) => ({ merchantId, asset }));
    for (const { merchantId, asset, items } of groups) {
      const open = await listOpenNumbers(deps.db, { merchantId, asset });
      const isMade = ({ number }: { number: number }) =>
        made.has(settlementNonce(deps, { merchant_id: merchantId, asset, number }));
      const matched = new Set(open.filter(isMade).map(({ id }) => id));
      if (matched.size > 0) for (const { id } of items) if (!matched.has(id)) behind.add(id);
    }
  }
  return behind;
}
