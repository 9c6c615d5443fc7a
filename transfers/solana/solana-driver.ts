import type { SolanaChain } from "../../chains/solana/open.ts";
import { readNewestSlot } from "../../chains/solana/reads.ts";
import type { TransferDriver } from "../driver.ts";
import { screenByList } from "../list-screening.ts";
import { readRelayerBalances } from "./relayer-balances.ts";
import { startSolana } from "./start.ts";
import { runSolanaTurn } from "./turn.ts";
import { checkSolanaSignature, judgeSolana } from "./verify.ts";

/** Returns the driver of a Solana cluster. */
export function solanaTransfers(chain: SolanaChain): TransferDriver {
  return {
    readsBlocks: false,
    start: (deps) => startSolana(deps, chain),
    readNewest: () => readNewestSlot(chain),
    runPass: (deps, watched, args) => runSolanaTurn(deps, chain, watched, args),
    verify: (deps, all) => judgeSolana(deps, chain, all),
    checkSignature: (signed) => checkSolanaSignature(chain, signed),
    screen: async (deps, accounts) => screenByList(deps, chain.chain, accounts),
    readGasBalances: (deps) => readRelayerBalances(deps, chain),
  };
}
