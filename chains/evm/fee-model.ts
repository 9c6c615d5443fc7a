import type { Hex } from "viem";
import { ChainError } from "../errors.ts";
import { ARB_SYS } from "./current-block.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { GAS_PRICE_ORACLE, readRollupFee } from "./rollup-fees.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * Compares `feeModel` of the networks file with the chain. Returns what is wrong, or undefined. A rollup whose data fee is not
 * counted costs more than its ceiling. Throws ChainError `rpc_unreachable` or `rpc_answer`.
 */
export async function validateFeeModel(chain: EvmChain): Promise<string | undefined> {
  const { feeModel } = chain.network;
  if (feeModel === "op-stack" || feeModel === "arbitrum") {
    const sample = { to: chain.treasury, data: "0x", gas: 21_000n } as const;
    return readRollupFee(chain, sample).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof ChainError && error.code === "wrong_contract") return error.message;
        throw error;
      },
    );
  }
  if (await hasCode(chain, GAS_PRICE_ORACLE)) return `${chain.chain} is an OP Stack chain: set feeModel to op-stack`;
  if (await hasCode(chain, ARB_SYS)) return `${chain.chain} is an Arbitrum chain: set feeModel to arbitrum`;
  if (feeModel === "legacy") return undefined;
  const newest = await chain.rpc({ method: "eth_getBlockByNumber", params: ["latest", false] }).catch(throwChainError);
  return newest && !newest.baseFeePerGas
    ? `blocks of ${chain.chain} have no base fee (EIP-1559): set feeModel to legacy`
    : undefined;
}

async function hasCode(chain: EvmChain, address: Hex): Promise<boolean> {
  return (await chain.rpc({ method: "eth_getCode", params: [address, "latest"] }).catch(throwChainError)) !== "0x";
}
