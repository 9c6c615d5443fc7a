import { readAccounts } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { LaneFunds } from "../transfer-driver.ts";

/** Two signatures, and the least that an account without data must keep to exist, lamports. */
const LEAST_LAMPORTS = 2n * 5_000n + 890_880n;

/**
 * Sets the gauge of the relayers' balances, lamports. They keep their last values when they cannot be read. Returns the
 * balances that were read.
 */
export async function readRelayerBalances(
  deps: Pick<TransferDeps, "metrics" | "log">,
  chain: SolanaChain,
): Promise<LaneFunds[]> {
  const needs = LEAST_LAMPORTS + chain.network.maxPriorityFee;
  try {
    const accounts = await readAccounts(chain, chain.lanes);
    return chain.lanes.map((lane, index) => {
      const balance = BigInt(accounts[index]?.lamports ?? 0n);
      deps.metrics.laneGasBalance.set({ chain: chain.chain, lane }, Number(balance));
      return { chain: chain.chain, lane, balance, needs };
    });
  } catch (err) {
    deps.log.warn({ err, chain: chain.chain }, "relayers' balances cannot be read");
    return [];
  }
}
