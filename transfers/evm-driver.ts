import { readHead } from "../chains/evm/blocks.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { TransferDriver } from "./driver.ts";
import { runBlockPass } from "./evm-pass.ts";
import { readLaneBalances } from "./lane-funds.ts";
import { screenByOracle } from "./oracle.ts";
import { startEvm } from "./start-lanes.ts";
import { checkKey, type EvmSigned, verifyAnyKind } from "./verify-evm.ts";

/** Returns the driver of an EVM chain. */
export function evmTransfers(chain: EvmChain): TransferDriver {
  return {
    readsBlocks: true,
    start: (deps) => startEvm(deps, chain),
    readNewest: () => readHead(chain.rpc),
    runPass: (deps, watched, args) => runBlockPass(deps, chain, watched, args),
    verify: (deps, all, by) => verifyAnyKind(deps, chain, all, by),
    checkSignature: (signed) => checkKey(chain, signed as EvmSigned),
    screen: (deps, accounts) => screenByOracle(deps, chain, accounts),
    readGasBalances: (deps) => readLaneBalances(deps, chain),
  };
}
