import { ChainError } from "../../chains/errors.ts";
import { listNeverSeen } from "../../chains/solana/never-seen.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { type HistoryEntry, releaseNamed } from "../../db/queries/history-entries.ts";
import { MAX_READ_ATTEMPTS } from "../history-attempts.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { readFinalState } from "./final-states.ts";

/**
 * Lets the payments and payouts go on that an entry of the history names, if an endpoint has listed a transaction that does not exist:
 * after `MAX_READ_ATTEMPTS` no endpoint that answers has it, and two endpoints whose history goes back to its slot have never seen it.
 * One that exists and cannot be read goes on holding them. The entry is kept and retried. Throws ChainError.
 * @param error why the entry could not be read
 */
export async function releaseInvented(
  deps: Pick<TransferDeps, "db" | "log" | "metrics" | "now">,
  chain: SolanaChain,
  { entry, attemptsMade, error }: { entry: HistoryEntry; attemptsMade: number; error: unknown },
): Promise<void> {
  const isMissing = error instanceof ChainError && error.code === "rpc_behind";
  if (!entry.urgent || attemptsMade < MAX_READ_ATTEMPTS || !isMissing) return;
  const { account, signature, slot } = entry;
  const { slot: final } = await readFinalState(deps, chain);
  // An endpoint can name any slot, also one that no endpoint ever reaches.
  const since = Math.min(slot, final);
  const { never } = await listNeverSeen(chain, [{ hash: signature, earliest: { slot: since } }], { since });
  if (!never.has(signature)) return;
  await releaseNamed(deps.db, entry);
  deps.log.error(
    { chain: chain.chain, account, tx: signature, slot, count: entry.nonces.length },
    "an endpoint has listed a transaction that does not exist; payments and payouts that it names wait for it no longer",
  );
}
