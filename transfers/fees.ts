/** Fees of an EIP-1559 transaction, wei per gas. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint };
export type FeePolicy = { maxFeePerGas: bigint; priorityFeePerGas: bigint };

/**
 * What to offer at a base fee: room for it to double, under the ceiling. Undefined when even the next block would cost
 * more than the ceiling: then the lane holds, and a person decides.
 */
export function chooseFees(baseFee: bigint, policy: FeePolicy): Fees | undefined {
  const maxPriorityFeePerGas = policy.priorityFeePerGas;
  if (baseFee + maxPriorityFeePerGas > policy.maxFeePerGas) return undefined;
  const wanted = baseFee * 2n + maxPriorityFeePerGas;
  return { maxFeePerGas: wanted < policy.maxFeePerGas ? wanted : policy.maxFeePerGas, maxPriorityFeePerGas };
}

/**
 * What a replacement has to offer: at least 12.5 % more of both than the bytes before it (nodes refuse less than 10 %,
 * and rounding must not eat it), and enough for today's base fee. Undefined when that is above the ceiling.
 */
export function chooseReplacementFees(before: Fees, baseFee: bigint, policy: FeePolicy): Fees | undefined {
  const raise = (fee: bigint) => (fee * 1125n) / 1000n + 1n;
  const today = baseFee * 2n + policy.priorityFeePerGas;
  const maxPriorityFeePerGas = raise(before.maxPriorityFeePerGas);
  const least = raise(before.maxFeePerGas);
  if (least > policy.maxFeePerGas) return undefined;
  const wanted = today > least ? today : least;
  const maxFeePerGas = wanted < policy.maxFeePerGas ? wanted : policy.maxFeePerGas;
  return {
    maxFeePerGas,
    maxPriorityFeePerGas: maxPriorityFeePerGas < maxFeePerGas ? maxPriorityFeePerGas : maxFeePerGas,
  };
}
