import { readAccounts } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Sets the gauge of the relayers' balances, lamports. They keep their last values when they cannot be read. */
export async function readRelayerBalances(
  deps: Pick<TransferDeps, "metrics" | "log">,
  chain: SolanaChain,
): Promise<void> {
  try {
    const accounts = await readAccounts(chain, chain.lanes);
    for (const [index, lane] of chain.lanes.entries())
      deps.metrics.laneGasBalance.set({ chain: chain.chain, lane }, Number(accounts[index]?.lamports ?? 0n));
  } catch (err) {
    deps.log.warn({ err, chain: chain.chain }, "relayers' balances cannot be read");
  }
}
