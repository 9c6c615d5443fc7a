import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";

/** Fees of a transaction, wei per gas. On a chain without EIP-1559 both are its gas price. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };
export type FeePolicy = { maxFeePerGas: bigint; priorityFeePerGas: bigint };

/**
 * Returns the fees for a new transaction: enough for the base fee to double, up to the ceiling. Returns undefined when even
 * the next block costs more than the ceiling. The lane then sends nothing until the base fee falls or an operator acts.
 */
export function chooseFees(baseFee: bigint, policy: FeePolicy): Fees | undefined {
  const maxPriorityFeePerGas = policy.priorityFeePerGas;
  if (baseFee + maxPriorityFeePerGas > policy.maxFeePerGas) return undefined;
  const wanted = baseFee * 2n + maxPriorityFeePerGas;
  return { maxFeePerGas: wanted < policy.maxFeePerGas ? wanted : policy.maxFeePerGas, maxPriorityFeePerGas };
}

/**
 * Returns the fees for a replacement: both at least 12.5 % higher than before, and enough for the current base fee and for
 * the tip of the networks file, which an operator may have raised. Nodes reject less than 10 %, and the margin covers
 * rounding. Returns undefined when that exceeds the ceiling.
 */
export function chooseReplacementFees(before: Fees, baseFee: bigint, policy: FeePolicy): Fees | undefined {
  const raise = (fee: bigint) => (fee * 1125n) / 1000n + 1n;
  const current = baseFee * 2n + policy.priorityFeePerGas;
  const raised = raise(before.maxPriorityFeePerGas);
  const tip = raised > policy.priorityFeePerGas ? raised : policy.priorityFeePerGas;
  const least = raise(before.maxFeePerGas);
  if (least > policy.maxFeePerGas) return undefined;
  const wanted = current > least ? current : least;
  const maxFeePerGas = wanted < policy.maxFeePerGas ? wanted : policy.maxFeePerGas;
  return { maxFeePerGas, maxPriorityFeePerGas: tip < maxFeePerGas ? tip : maxFeePerGas };
}

/** Returns the policy for a transaction with this gas limit, wei per gas: all of its gas costs at most `maxTransactionFee`. */
export function limitPolicy(
  policy: FeePolicy,
  { gas, maxTransactionFee }: { gas: bigint; maxTransactionFee: bigint },
): FeePolicy {
  const most = maxTransactionFee / gas;
  return most < policy.maxFeePerGas ? { ...policy, maxFeePerGas: most } : policy;
}

/**
 * Returns true for a transaction that cannot pay the current base fee and its tip. A transaction with a gas price pays the
 * base fee out of it, and the rest is its tip.
 */
export function isPricedOut(fees: Fees, baseFee: bigint, feeModel: EvmNetwork["feeModel"]): boolean {
  const tip = feeModel === "legacy" ? 0n : fees.maxPriorityFeePerGas;
  return fees.maxFeePerGas < baseFee + tip;
}

/**
 * Returns the gas price of a new transaction on a chain without EIP-1559: the node's price plus the tip. Such a transaction
 * pays what it offers, so it offers no more than now needed. Returns undefined above the ceiling.
 */
export function chooseGasPrice(proposed: bigint, policy: FeePolicy): Fees | undefined {
  const price = proposed + policy.priorityFeePerGas;
  return price > policy.maxFeePerGas ? undefined : { maxFeePerGas: price, maxPriorityFeePerGas: price };
}

/** Returns the gas price of a replacement on a chain without EIP-1559, by the rules of `chooseReplacementFees`. */
export function chooseReplacementPrice(before: Fees, proposed: bigint, policy: FeePolicy): Fees | undefined {
  // The node's price is what a transaction pays now: half of it stands for a base fee, because twice that is offered.
  const fees = chooseReplacementFees(before, proposed / 2n, policy);
  return fees && { maxFeePerGas: fees.maxFeePerGas, maxPriorityFeePerGas: fees.maxFeePerGas };
}

/**
 * Returns the policy for the execution of a transaction for which a rollup charges `charge` wei besides: the ceiling without
 * that charge per gas of the limit. It is negative when the charge alone exceeds the ceiling: then no fee is allowed.
 */
export function deductCharge(policy: FeePolicy, { charge, gas }: { charge: bigint; gas: bigint }): FeePolicy {
  return { ...policy, maxFeePerGas: policy.maxFeePerGas - (charge + gas - 1n) / gas };
}
