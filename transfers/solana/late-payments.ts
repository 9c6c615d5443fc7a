import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { listSignaturesOfEach } from "../../chains/solana/transaction-history.ts";
import type { SolanaTransferRow } from "../../db/queries/transfers.ts";
import { findHistory } from "../caught-up.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { type SortedByBlockhash, sortByBlockhash } from "./expired-blockhashes.ts";

/**
 * A transfer that was accepted longer ago than this may have waited, while no worker ran, until its blockhash expired, milliseconds. Workers
 * sign the others without asking, because their blockhashes were valid when they were accepted.
 */
const LATE_MS = 5_000;
/** How long what a check has found counts for later calls, milliseconds. Other workers may make the next ones. */
const CHECK_KEPT_MS = 30_000;

type Deps = Pick<TransferDeps, "now" | "db">;
/** A transaction that is confirmed, and not listed yet, names those in `named`. It may be their buyer's own transfer. */
type Sorted = SortedByBlockhash & { named: readonly SolanaTransferRow[] };

const beside = runBesidePasses<Sorted & { at: number }>();

/** Returns the time before which transfers were accepted that may have waited for too long. */
export const lateBefore = ({ now }: Pick<Deps, "now">) => new Date(now().getTime() - LATE_MS);

/**
 * Sorts late transfers of buyers as `sortByBlockhash` does, and puts those into `named` that their buyers may have made themselves. A check
 * that waits for an endpoint goes on beside later calls, so that it delays no other payment, and one of them gets what it finds. A transfer
 * is in no list meanwhile.
 */
export async function sortLate(deps: Deps, chain: SolanaChain, rows: readonly SolanaTransferRow[]): Promise<Sorted> {
  const found = rows.length > 0 ? await beside(chain, () => check(deps, chain, rows)) : undefined;
  const isRecent = found !== undefined && deps.now().getTime() - found.at <= CHECK_KEPT_MS;
  if (!isRecent) return { signable: [], expired: [], named: [] };
  // An earlier call may have begun the check, with other transfers.
  const keep = (sorted: readonly SolanaTransferRow[]) => rows.filter(({ id }) => sorted.some((one) => one.id === id));
  return { signable: keep(found.signable), expired: keep(found.expired), named: keep(found.named) };
}

async function check(deps: Deps, chain: SolanaChain, rows: readonly SolanaTransferRow[]) {
  const { signable: valid, expired } = await sortByBlockhash(chain, rows);
  const named = await listNamed(deps, chain, valid);
  const signable = valid.filter((row) => !named.includes(row));
  return { signable, expired, named, at: deps.now().getTime() };
}

/**
 * Returns those of these transfers that the memo of a confirmed transaction names, at any endpoint, in a slot up to which the history is not
 * listed. Leaves out endpoints that do not answer.
 */
async function listNamed(deps: Deps, chain: SolanaChain, rows: readonly SolanaTransferRow[]) {
  if (rows.length === 0) return [];
  const listedSlot = (await findHistory(deps, chain))?.listedSlot ?? -1;
  const accounts = new Set(rows.flatMap(({ asset }) => chain.tokens.get(asset)?.treasuryAccount ?? []));
  const lists = await Promise.all(
    [...accounts].map((account) => listSignaturesOfEach(chain, { account, depth: "confirmed" }, {})),
  );
  const memos = lists
    .flatMap(({ shown }) => shown.flatMap(({ page }) => page))
    .flatMap(({ slot, failed, memo }) => (slot > listedSlot && !failed ? memo : []));
  return rows.filter((row) => memos.some((memo) => memo.includes(row.authorization_nonce)));
}
