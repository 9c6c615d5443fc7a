import { readGasPrice } from "../../chains/evm/evm-broadcast.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { readRollupFee } from "../../chains/evm/rollup-fees.ts";
import {
  chooseFees,
  chooseGasPrice,
  chooseReplacementFees,
  chooseReplacementPrice,
  deductCharge,
  type FeePolicy,
  type Fees,
  limitPolicy,
} from "./gas-fees.ts";
import type { Payload } from "./multicall-batch.ts";

/**
 * The price of a transaction. `extraGas` is gas that a rollup takes for its data and that its limit covers besides the
 * execution. `charge` is what a rollup takes from the sender on top of all gas, wei.
 */
export type Price = { fees: Fees; extraGas: bigint; charge: bigint };

/** Gas for data rises when the parent chain becomes more expensive before inclusion. Unused gas is not paid. */
const EXTRA_GAS_FACTOR = 2n;

/**
 * Returns the price of a transaction that is sent now, or undefined when it would exceed the ceiling. On rollups, and on
 * chains without EIP-1559, asks an endpoint with one call. Throws ChainError when none answers.
 * @param baseFee of the newest block, wei per gas
 */
export async function priceTransaction(chain: EvmChain, payload: Payload, baseFee: bigint): Promise<Price | undefined> {
  const { feeModel, fees: policy } = chain.network;
  if (feeModel === "legacy") {
    const fees = chooseGasPrice(await readFromReadable(chain, readGasPrice), policy);
    return fees && { fees, extraGas: 0n, charge: 0n };
  }
  const { wei, gas } = await readRollupFee(chain, payload);
  const fees = chooseFees(baseFee, deductCharge(policy, { charge: wei, gas: payload.gas }));
  return fees && { fees, extraGas: gas * EXTRA_GAS_FACTOR, charge: gas > 0n ? 0n : wei };
}

/**
 * Returns the fees of a replacement of a transaction, or undefined when they would exceed the ceiling or the most that one
 * transaction may offer.
 */
export async function priceReplacement(
  chain: EvmChain,
  { before, payload, baseFee }: { before: Fees; payload: Payload; baseFee: bigint },
): Promise<Fees | undefined> {
  const { feeModel, fees } = chain.network;
  const { gas } = payload;
  const limit = (policy: FeePolicy) => limitPolicy(policy, { gas, maxTransactionFee: fees.maxTransactionFee });
  if (feeModel === "legacy")
    return chooseReplacementPrice(before, await readFromReadable(chain, readGasPrice), limit(fees));
  const { wei } = await readRollupFee(chain, payload);
  return chooseReplacementFees(before, baseFee, limit(deductCharge(fees, { charge: wei, gas })));
}

/**
 * Returns the highest cost of a transaction, and of those in flight, wei. A rollup's charge may double before the inclusion,
 * as the base fee may. Transactions in flight are charged in proportion to their gas.
 */
export function sumCosts(
  { fees, charge }: Price,
  gas: bigint,
  inFlight: { cost: bigint; gas: bigint },
): { cost: bigint; inFlight: bigint } {
  const most = 2n * charge;
  return { cost: gas * fees.maxFeePerGas + most, inFlight: inFlight.cost + (inFlight.gas * most) / gas };
}
