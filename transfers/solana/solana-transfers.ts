import { readLastValidHeight } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { openSolanaKeys } from "../../chains/solana/open-solana-keys.ts";
import { listCursorAccounts } from "../../db/queries/account-cursors.ts";
import { screenByList } from "../list-screening.ts";
import type { TransferDriver } from "../transfer-driver.ts";
import { readSolanaSigned } from "../verification.ts";
import { readHistory } from "./read-history.ts";
import { readRelayerBalances } from "./relayer-balances.ts";
import { runSlotPass } from "./slot-pass.ts";
import { solanaWallets } from "./solana-wallets.ts";
import { startSolana } from "./start-cluster.ts";
import { submitReady } from "./submit-ready.ts";
import { checkSolanaSignature, verifySolana } from "./verify-payments.ts";

/** Returns the driver of a Solana cluster. */
export function solanaTransfers(chain: SolanaChain): TransferDriver {
  return {
    readsBlocks: false,
    wallets: solanaWallets(chain),
    openKeys: async (stores, readers) => {
      stores.solanaKeys.set(chain.chain, await openSolanaKeys(chain.network, readers));
    },
    start: (deps) => startSolana(deps, chain),
    listWatched: async ({ db }) => {
      const accounts = new Set(await listCursorAccounts(db, chain.chain));
      const watched = [...chain.tokens.values()].filter(({ treasuryAccount }) => accounts.has(treasuryAccount));
      return new Set(watched.map(({ asset }) => asset));
    },
    readLastHeight: () => readLastValidHeight(chain),
    runPass: (deps, watched, args) => runSlotPass(deps, chain, watched, args),
    readHistory: (deps, handlers) => readHistory(deps, chain.chain, handlers),
    send: (deps, _sender, handlers) => submitReady(deps, chain.chain, handlers),
    wakeOwners: async () => false,
    payoutForm: () => ({ kind: "spl", valid_before: null }),
    verify: (deps, all) => verifySolana(deps, chain, all.map(readSolanaSigned)),
    checkSignature: (signed) => checkSolanaSignature(chain, readSolanaSigned(signed)),
    screen: async (deps, accounts) => screenByList(deps, chain.chain, accounts),
    isBlockedByIssuer: async () => false,
    listBarred: async () => new Set(),
    readGasBalances: (deps) => readRelayerBalances(deps, chain),
    readIssuerActions: async () => undefined,
    // Each transaction has a fee cap of its own, and none waits for fees to fall.
    isLaneHeld: () => false,
  };
}
