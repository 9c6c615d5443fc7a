import type { ChainStatus, LaneStatus } from "../../db/queries/gauges.ts";
import { chooseFees, chooseReplacementFees, type FeePolicy } from "./gas-fees.ts";

/**
 * Returns true while the fee ceiling stops a lane that has something to send: the next block's fee is above the
 * ceiling, or the transaction with the lowest nonce is underpriced and its replacement would exceed the ceiling.
 */
export function isLaneHeld(
  lane: Pick<LaneStatus, "inFlight" | "lowestMaxFee" | "lowestPriorityFee">,
  chain: Pick<ChainStatus, "baseFee" | "waiting"> | undefined,
  policy: FeePolicy,
): boolean {
  if (!chain || chain.baseFee === null) return false;
  const { baseFee } = chain;
  if (!chooseFees(baseFee, policy)) return chain.waiting || lane.inFlight > 0;
  if (lane.lowestMaxFee === null || lane.lowestPriorityFee === null) return false;
  const lowest = { maxFeePerGas: lane.lowestMaxFee, maxPriorityFeePerGas: lane.lowestPriorityFee };
  const isStuck = lowest.maxFeePerGas < baseFee + lowest.maxPriorityFeePerGas;
  return isStuck && !chooseReplacementFees(lowest, baseFee, policy);
}
