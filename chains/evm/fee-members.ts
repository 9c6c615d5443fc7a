import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";

/** The type of a transaction, and the members that say what it offers, wei per gas. */
export type FeeMembers =
  | { type: "eip1559"; maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
  | { type: "legacy"; gasPrice: bigint };

/** Returns the members of a transaction that offers these fees. On a chain without EIP-1559 it has a single gas price. */
export function toFeeMembers(
  feeModel: EvmNetwork["feeModel"],
  { maxFeePerGas, maxPriorityFeePerGas }: { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint },
): FeeMembers {
  if (feeModel === "legacy") return { type: "legacy", gasPrice: maxFeePerGas };
  return { type: "eip1559", maxFeePerGas, maxPriorityFeePerGas };
}
