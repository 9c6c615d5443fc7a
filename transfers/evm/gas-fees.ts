/** Fees of an EIP-1559 transaction, wei per gas. */
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
 * Returns the fees for a replacement: both at least 12.5 % higher than before, and enough for the current base fee. Nodes
 * reject less than 10 %, and the margin covers rounding. Returns undefined when that exceeds the ceiling.
 */
export function chooseReplacementFees(before: Fees, baseFee: bigint, policy: FeePolicy): Fees | undefined {
  const raise = (fee: bigint) => (fee * 1125n) / 1000n + 1n;
  const current = baseFee * 2n + policy.priorityFeePerGas;
  const maxPriorityFeePerGas = raise(before.maxPriorityFeePerGas);
  const least = raise(before.maxFeePerGas);
  if (least > policy.maxFeePerGas) return undefined;
  const wanted = current > least ? current : least;
  const maxFeePerGas = wanted < policy.maxFeePerGas ? wanted : policy.maxFeePerGas;
  return {
    maxFeePerGas,
    maxPriorityFeePerGas: maxPriorityFeePerGas < maxFeePerGas ? maxPriorityFeePerGas : maxFeePerGas,
  };
}
