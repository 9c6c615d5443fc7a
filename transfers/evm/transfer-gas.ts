import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";

/** Gas limit of a transfer whose token is no longer in the networks file. */
const UNKNOWN_GAS = 150_000;

/** Returns the gas limit of a row's transfer. */
export function gasOf(chain: EvmChain, row: { asset: string; smart_wallet: boolean }): number {
  return row.smart_wallet ? chain.network.walletGas : (chain.tokens.get(row.asset)?.transferGas ?? UNKNOWN_GAS);
}
