import { readNewestSlot } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { screenByList } from "../list-screening.ts";
import type { TransferDriver } from "../transfer-driver.ts";
import { readSolanaSigned } from "../verification.ts";
import { readRelayerBalances } from "./relayer-balances.ts";
import { runSlotPass } from "./slot-pass.ts";
import { startSolana } from "./start-cluster.ts";
import { checkSolanaSignature, verifySolana } from "./verify-payments.ts";

/** Returns the driver of a Solana cluster. */
export function solanaTransfers(chain: SolanaChain): TransferDriver {
  return {
    readsBlocks: false,
    start: (deps) => startSolana(deps, chain),
    readNewest: () => readNewestSlot(chain),
    runPass: (deps, watched, args) => runSlotPass(deps, chain, watched, args),
    verify: (deps, all) => verifySolana(deps, chain, all.map(readSolanaSigned)),
    checkSignature: (signed) => checkSolanaSignature(chain, readSolanaSigned(signed)),
    screen: async (deps, accounts) => screenByList(deps, chain.chain, accounts),
    readGasBalances: (deps) => readRelayerBalances(deps, chain),
  };
}
