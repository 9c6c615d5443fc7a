import type { Hex } from "viem";
import { encodeTransfer } from "../../chains/evm/eip3009.ts";
import { readGasPrice } from "../../chains/evm/evm-broadcast.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { readRollupFee } from "../../chains/evm/rollup-fees.ts";
import { keccak256 } from "../../chains/keccak256.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { deductCharge, type FeePolicy, limitPolicy } from "./gas-fees.ts";
import { BASE_GAS, type Payload } from "./multicall-batch.ts";

/** The last charges that this process has read, wei for `gas`. */
const latest = new WeakMap<EvmChain, { charge: bigint; gas: bigint }>();

/** Returns a transaction like that of one payment. No chain accepts its authorization. */
export function samplePayment(chain: EvmChain): Payload {
  const word = keccak256(Buffer.from("a sample"));
  const from: Hex = `0x${word.slice(-40)}`;
  const [first] = chain.tokens.values();
  const token = first?.token ?? chain.treasury;
  const authorization = { token, from, to: chain.treasury, value: 10_000_000n, validBefore: 2 ** 31, nonce: word };
  const data = encodeTransfer(authorization, `0x${word.slice(2)}${word.slice(2)}1b`);
  return { to: token, data, gas: BASE_GAS + BigInt(first?.transferGas ?? 0) };
}

/**
 * Reads what the chain charges now for one payment and what no block states: a rollup's fee, or the gas price of a chain
 * without EIP-1559. Keeps the last value when it cannot be read.
 */
export async function readCharge(deps: Pick<TransferDeps, "log">, chain: EvmChain): Promise<void> {
  const sample = samplePayment(chain);
  try {
    const isLegacy = chain.network.feeModel === "legacy";
    const charge = isLegacy
      ? sample.gas * (await readFromReadable(chain, readGasPrice))
      : (await readRollupFee(chain, sample)).wei;
    latest.set(chain, { charge, gas: sample.gas });
  } catch (err) {
    deps.log.warn({ err, chain: chain.chain }, "chain's charge for a payment cannot be read");
  }
}

/**
 * Returns the fee policy for the gas alone of a transaction with this gas limit, by the charges that `readCharge` has read and the
 * most that one transaction may offer.
 */
export function deductLatestCharge(chain: EvmChain, gas: bigint): FeePolicy {
  const { fees } = chain.network;
  const policy = limitPolicy(fees, { gas, maxTransactionFee: fees.maxTransactionFee });
  return deductCharge(policy, latest.get(chain) ?? { charge: 0n, gas: 1n });
}
