import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { EvmNetwork } from "../../runtime/networks/read-networks.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { RowMember } from "./dry-run.ts";
import { isPricedOut } from "./gas-fees.ts";
import { buildPayload, sumGas } from "./multicall-batch.ts";
import { type Price, priceTransaction } from "./price-transaction.ts";

type FeeLimits = Pick<EvmNetwork, "fees" | "feeModel">;

/**
 * Returns a batch and its price, after leaving out the last transfers when all of them would offer too much. Returns undefined,
 * so that the transfers wait, while the chain's charges exceed `fees.maxFeePerGas`, or the first transfer alone exceeds
 * `fees.maxTransactionFee`.
 * @param baseFee of the newest block, wei per gas
 */
export async function priceBatch(
  deps: Pick<TransferDeps, "log">,
  chain: EvmChain,
  { picked, baseFee }: { picked: readonly RowMember[]; baseFee: bigint },
): Promise<{ batch: readonly RowMember[]; price: Price } | undefined> {
  const read = (members: readonly RowMember[]) =>
    priceTransaction(chain, buildPayload(chain.multicall, members), baseFee);
  const whole = await read(picked);
  const batch = whole ? cutBatch(picked, whole, chain.network) : picked;
  // A rollup charges less for less data.
  const price = batch.length < picked.length ? await read(batch) : whole;
  const limited = price && limitPrice(price, { gas: sumGas(batch), baseFee }, chain.network);
  if (limited) return { batch, price: limited };
  const { maxFeePerGas, maxTransactionFee } = chain.network.fees;
  deps.log.warn(
    { chain: chain.chain, ceiling: String(maxFeePerGas), most: String(maxTransactionFee) },
    "transfers wait because a transaction with all its charges would exceed fees.maxFeePerGas or fees.maxTransactionFee",
  );
  return undefined;
}

/**
 * Returns the first transfers of a batch that offer at most half of `fees.maxTransactionFee` together, and at least one. With
 * the other half, a replacement can offer twice as much per gas.
 */
export function cutBatch<T extends { gas: number }>(
  batch: readonly T[],
  price: Price,
  { fees }: Pick<FeeLimits, "fees">,
): readonly T[] {
  let cut = batch;
  while (cut.length > 1 && 2n * offerOf(price, sumGas(cut)) > fees.maxTransactionFee) cut = cut.slice(0, -1);
  return cut;
}

/**
 * Returns a price with which the transaction offers at most `fees.maxTransactionFee`: with less room for a rise of the base fee
 * if necessary. Returns undefined when the rest cannot pay the base fee and the tip, or the node's gas price.
 */
export function limitPrice(
  price: Price,
  { gas, baseFee }: { gas: bigint; baseFee: bigint },
  { fees: { maxTransactionFee }, feeModel }: FeeLimits,
): Price | undefined {
  if (offerOf(price, gas) <= maxTransactionFee) return price;
  const fees = { ...price.fees, maxFeePerGas: maxTransactionFee / (gas + price.extraGas) };
  return feeModel === "legacy" || isPricedOut(fees, baseFee, feeModel) ? undefined : { ...price, fees };
}

/** Returns what a transaction offers for the gas of its transfers and for its data, wei. Nodes compare this with their limit. */
function offerOf({ fees, extraGas }: Price, gas: bigint): bigint {
  return (gas + extraGas) * fees.maxFeePerGas;
}
