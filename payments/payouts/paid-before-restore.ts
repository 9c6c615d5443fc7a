import { deriveNonce, refundKey } from "../../chains/natural-key.ts";
import { getChain } from "../../chains/open-chains.ts";
import { listUnclaimedNumbers } from "../../db/queries/payout-numbers.ts";
import type { RefundRow } from "../../db/queries/refunds.ts";
import { listOpenNumbers, type SettlementRow } from "../../db/queries/settlements.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { groupByBalance } from "./group-by-balance.ts";
import { type CatchUpDeps, chainOf, settlementNonce } from "./sign-payout.ts";

type Settlement = Pick<SettlementRow, "id" | "merchant_id" | "asset">;

/** Forgotten payouts of a merchant and asset that begin in one run. */
const MOST = 100;

/** `waiting`: ids of settlements that must not begin yet. `forgotten`: ids of those whose payouts the chain shows. */
type ForgottenPayouts = { waiting: ReadonlySet<string>; forgotten: readonly string[] };

/**
 * Returns which of these settlements must not begin yet, because the chain shows a payout of the same merchant and asset
 * that a restored database does not know. That payout may have paid these settlements. They continue once it is adopted,
 * which needs its own settlement to begin. So this also returns the unpaid settlements that have the numbers of such
 * payouts, whether or not they are among the given ones: at most 100 of a merchant and asset, the first ones.
 */
export async function findForgottenPayouts(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks"> & CatchUpDeps,
  settlements: readonly Settlement[],
): Promise<ForgottenPayouts> {
  const waiting = new Set<string>();
  const forgotten: string[] = [];
  for (const [chain, all] of Map.groupBy(settlements, ({ asset }) => chainOf(asset))) {
    const { treasury } = getChain(deps.chains, chain);
    const made = await listUnclaimedNumbers(deps.db, { chain, payer: treasury });
    if (made.size === 0) continue;
    const groups = groupByBalance(all, ({ merchant_id: merchantId, asset }) => ({ merchantId, asset }));
    for (const { merchantId, asset, items } of groups) {
      const open = await listOpenNumbers(deps.db, { merchantId, asset });
      const matched = open.filter(({ number }) =>
        made.has(settlementNonce(deps, { merchant_id: merchantId, asset, number })),
      );
      const ids = new Set(matched.map(({ id }) => id));
      if (ids.size > 0) for (const { id } of items) if (!ids.has(id)) waiting.add(id);
      const unbegun = matched.filter(({ state }) => state !== "paying");
      forgotten.push(...unbegun.slice(0, MOST).map(({ id }) => id));
    }
  }
  return { waiting, forgotten };
}

/** How many numbers above a refund's own are looked for on the chain. */
const LATER_NUMBERS = 16;

/**
 * Returns those of these refunds that must not begin, because the chain shows a later refund of the same payment that a
 * restored database does not know. The lost database may have withdrawn them and sent the later refund in their place.
 * They continue when the later refund is requested again and adopted, which may need their withdrawal. A refund whose own
 * number the chain shows too was sent: it begins, and is adopted.
 */
export async function listBehindForgottenRefunds(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks">,
  refunds: readonly RefundRow[],
): Promise<Set<string>> {
  const waiting = new Set<string>();
  for (const [chain, all] of Map.groupBy(refunds, ({ asset }) => chainOf(asset))) {
    const { treasury } = getChain(deps.chains, chain);
    const made = await listUnclaimedNumbers(deps.db, { chain, payer: treasury });
    if (made.size === 0) continue;
    for (const { id, merchant_id: merchantId, payment_id: paymentId, number } of all) {
      if (merchantId === null || paymentId === null) continue;
      const isMade = (one: number) =>
        made.has(deriveNonce(deps.networks.deployment, refundKey({ merchantId, paymentId, number: one })));
      if (isMade(number)) continue;
      for (let later = number + 1; later <= number + LATER_NUMBERS; later += 1) if (isMade(later)) waiting.add(id);
    }
  }
  return waiting;
}
