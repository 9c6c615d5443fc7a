import { readHead } from "../../chains/evm/blocks.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { TransferDriver } from "../transfer-driver.ts";
import { readEvmSigned } from "../verification.ts";
import { runBlockPass } from "./block-pass.ts";
import { readLaneBalances } from "./lane-funds.ts";
import { screenByOracle } from "./oracle-screening.ts";
import { startEvm } from "./start-chain.ts";
import { checkKey, verifyAnyKind } from "./verify-authorizations.ts";

/** Returns the driver of an EVM chain. */
export function evmTransfers(chain: EvmChain): TransferDriver {
  return {
    readsBlocks: true,
    start: (deps) => startEvm(deps, chain),
    readNewest: () => readHead(chain.rpc),
    runPass: (deps, watched, args) => runBlockPass(deps, chain, watched, args),
    verify: (deps, all, by) => verifyAnyKind(deps, chain, all.map(readEvmSigned), by),
    checkSignature: (signed) => checkKey(chain, readEvmSigned(signed)),
    screen: (deps, accounts) => screenByOracle(deps, chain, accounts),
    readGasBalances: (deps) => readLaneBalances(deps, chain),
  };
}
