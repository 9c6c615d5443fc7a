import type { ChainStatus, LaneStatus } from "../../db/queries/gauges.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import { chooseFees, chooseReplacementFees, type FeePolicy, isPricedOut } from "./gas-fees.ts";

/**
 * Returns true while the fee ceiling stops a lane that has something to send: the next block's fee is above the
 * ceiling, or the transaction with the lowest nonce is underpriced and its replacement would exceed the ceiling.
 * @param rules.policy for a transaction with one transfer of the lane
 */
export function isLaneHeld(
  lane: Pick<LaneStatus, "in_flight" | "lowest_max_fee" | "lowest_priority_fee">,
  chain: Pick<ChainStatus, "base_fee" | "waiting"> | undefined,
  { policy, feeModel }: { policy: FeePolicy; feeModel: EvmNetwork["feeModel"] },
): boolean {
  if (!chain || chain.base_fee === null) return false;
  const { base_fee: baseFee } = chain;
  if (!chooseFees(baseFee, policy)) return chain.waiting || lane.in_flight > 0;
  if (lane.lowest_max_fee === null || lane.lowest_priority_fee === null) return false;
  const lowest = { maxFeePerGas: lane.lowest_max_fee, maxPriorityFeePerGas: lane.lowest_priority_fee };
  return isPricedOut(lowest, baseFee, feeModel) && !chooseReplacementFees(lowest, baseFee, policy);
}
