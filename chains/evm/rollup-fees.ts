import {
  decodeFunctionResult,
  encodeFunctionData,
  type Hex,
  hexToBigInt,
  isHex,
  parseAbi,
  serializeTransaction,
} from "viem";
import { ChainError, parseAnswer } from "../errors.ts";
import { simulateCalls } from "./multicall.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";

/** The OP Stack's predeploy that computes the fees on top of the gas (specs.optimism.io, "Predeploys"). */
export const GAS_PRICE_ORACLE: Hex = "0x420000000000000000000000000000000000000f";
/** Arbitrum's NodeInterface. It has no code; nodes answer calls to it (docs.arbitrum.io, "NodeInterface"). */
export const NODE_INTERFACE: Hex = "0x00000000000000000000000000000000000000c8";

const oracleAbi = parseAbi([
  "function getL1Fee(bytes unsignedTransaction) view returns (uint256)",
  "function getOperatorFee(uint256 gas) view returns (uint256)",
]);
const nodeInterfaceAbi = parseAbi([
  "function gasEstimateL1Component(address to, bool contractCreation, bytes data) payable returns (uint64 gas, uint256 baseFee, uint256 l1BaseFee)",
]);

/** A transaction's receiver, call data and gas limit. */
type Content = { to: Hex; data: Hex; gas: bigint };

/**
 * What a rollup charges for a transaction besides its execution, at the newest block. `wei` is the whole charge. `gas` is the
 * part of it that the chain counts as gas, so the gas limit has to cover it: 0, except on Arbitrum.
 */
export type RollupFee = { wei: bigint; gas: bigint };

/** Reads the rollup fee of a transaction. It is 0, without a call, on chains that charge for gas alone. */
export async function readRollupFee(chain: EvmChain, content: Content): Promise<RollupFee> {
  switch (chain.network.feeModel) {
    case "op-stack":
      return readOpStackFee(chain, content);
    case "arbitrum":
      return readArbitrumFee(chain, content);
    default:
      return { wei: 0n, gas: 0n };
  }
}

/** The longest values that the transaction's other members have. The fee depends on the transaction's length. */
const LONGEST = { nonce: 0xffff_ffff, maxFeePerGas: 2n ** 64n - 1n, maxPriorityFeePerGas: 2n ** 64n - 1n };

/**
 * Returns the L1 data fee and, for the whole gas limit, the operator fee. Chains before the Isthmus upgrade have no operator
 * fee, and their oracle no function for it. Throws ChainError `wrong_contract` if the chain has no oracle.
 */
async function readOpStackFee(chain: EvmChain, { to, data, gas }: Content): Promise<RollupFee> {
  const unsigned = serializeTransaction({ type: "eip1559", chainId: chain.chainId, to, data, gas, ...LONGEST });
  const calls = [
    encodeFunctionData({ abi: oracleAbi, functionName: "getL1Fee", args: [unsigned] }),
    encodeFunctionData({ abi: oracleAbi, functionName: "getOperatorFee", args: [gas] }),
  ].map((call) => ({ target: GAS_PRICE_ORACLE, data: call }));
  const [l1Fee, operatorFee] = await simulateCalls(chain.rpc, chain, calls);
  if (!l1Fee?.ok || !isWord(l1Fee.data))
    throw new ChainError("wrong_contract", { detail: `${chain.chain} has no GasPriceOracle, which feeModel promises` });
  const operator = operatorFee?.ok && isWord(operatorFee.data) ? hexToBigInt(operatorFee.data) : 0n;
  return { wei: hexToBigInt(l1Fee.data) + operator, gas: 0n };
}

/** Returns the gas of the transaction's data, at the current base fee. Throws ChainError `wrong_contract`. */
async function readArbitrumFee(chain: EvmChain, { to, data }: Content): Promise<RollupFee> {
  const abi = nodeInterfaceAbi;
  const call = encodeFunctionData({ abi, functionName: "gasEstimateL1Component", args: [to, false, data] });
  const request = { to: NODE_INTERFACE, data: call };
  const answer = await chain.rpc({ method: "eth_call", params: [request, "latest"] }).catch(throwChainError);
  if (answer === "0x")
    throw new ChainError("wrong_contract", { detail: `${chain.chain} has no NodeInterface, which feeModel promises` });
  const [gas, baseFee] = parseAnswer(() =>
    decodeFunctionResult({ abi, functionName: "gasEstimateL1Component", data: answer }),
  );
  return { wei: gas * baseFee, gas };
}

const isWord = (data: Hex) => data.length === 66;

/**
 * Returns what a mined transaction paid besides its gas, wei: the OP Stack's L1 data fee and operator fee, which the receipt
 * states. Arbitrum's data is part of the gas used. The operator fee is gas times scalar / 1,000,000 plus constant, and since
 * the Jovian upgrade, whose receipts have a DA footprint, gas times scalar times 100 plus constant (specs.optimism.io).
 */
export function readPaidRollupFee(receipt: object, gasUsed: bigint): bigint {
  const scaled = gasUsed * (readMember(receipt, "operatorFeeScalar") ?? 0n);
  const isJovian = readMember(receipt, "daFootprintGasScalar") !== undefined;
  const operatorFee =
    (isJovian ? scaled * 100n : scaled / 1_000_000n) + (readMember(receipt, "operatorFeeConstant") ?? 0n);
  return (readMember(receipt, "l1Fee") ?? 0n) + operatorFee;
}

function readMember(receipt: object, name: string): bigint | undefined {
  const value: unknown = name in receipt ? receipt[name as keyof typeof receipt] : undefined;
  return isHex(value) ? hexToBigInt(value) : undefined;
}
