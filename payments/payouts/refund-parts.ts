import type { RefundRow } from "../../db/queries/refunds.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { chainOf } from "./sign-payout.ts";

/** The most refunds of one payment, before the one that returns its rest. Withdrawn ones do not count. */
export const MAX_PARTS = 20;

/**
 * Returns why a part of a payment is not refunded, or undefined. Each refund is a transfer whose gas the operator pays, so a payment has
 * a limited number of them, and none is below the dust amount of its asset. The rest of a payment is always refunded.
 * @param part.left what can still be refunded of the payment
 */
export function validatePart(
  { networks }: { networks: Pick<Networks, "chains"> },
  part: { asset: string; amount: bigint; left: bigint; refunds: readonly Pick<RefundRow, "state">[] },
): string | undefined {
  const { asset, amount, left, refunds } = part;
  if (amount === left) return undefined;
  const standing = refunds.filter(({ state }) => state !== "withdrawn");
  if (standing.length >= MAX_PARTS)
    return `amount: the payment has ${standing.length} refunds already, so only the rest can be refunded (${left} of caip19/${asset} left)`;
  const least = findDust(networks, asset);
  if (amount < least)
    return `amount.value: is below the least part of a payment in this asset (${least} of caip19/${asset})`;
  return undefined;
}

function findDust({ chains }: Pick<Networks, "chains">, asset: string): bigint {
  const assets = chains.find(({ chain }) => chain === chainOf(asset))?.assets ?? [];
  return BigInt(assets.find((one) => one.asset === asset)?.dust ?? 0);
}
