import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { SolanaTransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { type SortedByBlockhash, sortByBlockhash } from "./expired-blockhashes.ts";

/**
 * A transfer that was accepted longer ago than this may have waited, while no worker ran, until its blockhash expired, milliseconds. Workers
 * sign the others without asking, because their blockhashes were valid when they were accepted. A check counts as long.
 */
const LATE_MS = 5_000;

const beside = runBesidePasses<SortedByBlockhash & { at: number }>();

/** Returns true for a ready transfer that may have waited for too long. Pure. */
export const isLate = ({ now }: Pick<TransferDeps, "now">, { created_at: at }: SolanaTransferRow) =>
  now().getTime() - at.getTime() > LATE_MS;

/**
 * Sorts late transfers of buyers as `sortByBlockhash` does. A check that waits for an endpoint goes on beside later calls, so that it delays
 * no other payment, and one of them gets what it finds. A transfer is in neither list meanwhile. Never throws.
 */
export async function sortLate(
  deps: Pick<TransferDeps, "now">,
  chain: SolanaChain,
  rows: readonly SolanaTransferRow[],
): Promise<SortedByBlockhash> {
  const found = rows.length > 0 ? await beside(chain, () => check(deps, chain, rows)) : undefined;
  const isRecent = found !== undefined && deps.now().getTime() - found.at <= LATE_MS;
  // An earlier call may have begun the check, with other transfers.
  const keep = (sorted: readonly SolanaTransferRow[]) => rows.filter(({ id }) => sorted.some((one) => one.id === id));
  return isRecent
    ? { signable: keep(found.signable), expired: keep(found.expired) }
    : { signable: [], expired: [] };
}

async function check(deps: Pick<TransferDeps, "now">, chain: SolanaChain, rows: readonly SolanaTransferRow[]) {
  const sorted = await sortByBlockhash(chain, rows);
  return { ...sorted, at: deps.now().getTime() };
}
