import { type FinalizedState, readAgreedHeight } from "../../chains/solana/cluster-state.ts";
import { readNonces } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { listExpiredReady } from "../../db/queries/expired-transfers.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { SolanaTransferRow, TransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { keepWithExpiredBlockhash } from "./expired-blockhashes.ts";
import { findExpiryHeight, findNonceSlot, noteSignedHeights } from "./expiry-heights.ts";
import { listNeverIncluded } from "./never-included.ts";
import { listWaiting } from "./replacements.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Transfers checked in one search at most. */
const MAX_CHECKED = 100;
/**
 * How long after its acceptance or its signing endpoints are asked for the blockhash of a transaction that is not past its last height,
 * milliseconds: one endpoint may report heights that are far too high. Blockhashes live for a minute or two.
 */
const BLOCKHASH_MS = 5 * 60_000;
/**
 * Slots by which the listing of the history may be behind the final one for these, the lifetime of a blockhash. Theirs have lived for several
 * lifetimes, so the listing goes back to where the blockhash has expired, also when slots take longer than usual.
 */
const MAX_UNLISTED_SLOTS = 150;

/** Buyers' transfers that no relayer had signed, and hashes of transactions. None of them can be included any longer. */
type Expired = { neverSubmitted: readonly TransferRow[]; neverSeen: readonly string[] };
/** `listedHeight` is the height up to which the history is listed. A payment that a listed transaction names does not end before it is read. */
type Seen = { tracked: readonly TrackedTransaction[]; final: FinalizedState; listedHeight: number };
type Deps = Pick<TransferDeps, "db" | "log" | "now">;

const beside = runBesidePasses<Expired>();

/**
 * Searches for transactions that can no longer be included: two endpoints whose history goes back to the signing do not know them, and
 * one of these is true. The final block height, and the confirmed one of two endpoints, is past the lifetime of their blockhash; minutes
 * after the signing, two endpoints say that it has expired; or another transaction used their durable nonce. A search that waits for an
 * endpoint goes on beside later passes, so that it delays no other payment, and one of them gets what it finds. Returns undefined
 * meanwhile. Throws ChainError.
 */
export function searchExpired(deps: Deps, chain: SolanaChain, seen: Seen): Promise<Expired | undefined> {
  return beside(chain, () => findExpired(deps, chain, seen));
}

async function findExpired(deps: Deps, chain: SolanaChain, { tracked, final, listedHeight }: Seen): Promise<Expired> {
  const unseen = listWaiting(tracked).map(({ row }) => row);
  await noteSignedHeights(deps, chain, { unseen, final });
  const neverSubmitted = await listNeverSubmitted(deps, chain, { final, listedHeight });
  const past = await keepExpired(chain, unseen, { final, lastOf: findExpiryHeight });
  const expired = [...past, ...(await listLongExpired(deps, chain, unseen, past))];
  const { slot, usedUp } = await listUsedUp(chain, unseen, final);
  const args = { since: Math.max(final.slot, slot), final };
  const never = await listNeverIncluded(deps, chain, [...expired, ...usedUp], args);
  return { neverSubmitted, neverSeen: [...never] };
}

/**
 * Returns buyers' transfers that no relayer has signed, and that can be included no longer. The history is listed first, up to where
 * the blockhash has expired: a buyer who saw nothing happen may have paid by a transfer of their own. Throws ChainError.
 */
async function listNeverSubmitted(
  deps: Deps,
  chain: SolanaChain,
  { final, listedHeight }: Pick<Seen, "final" | "listedHeight">,
): Promise<TransferRow[]> {
  const now = deps.now();
  const height = Math.min(final.height, listedHeight);
  const acceptedBefore = new Date(now.getTime() - BLOCKHASH_MS);
  const args = { chain: chain.chain, height, acceptedBefore, now, limit: MAX_CHECKED };
  const ready = await listExpiredReady(deps.db, args);
  const isPast = ({ last_valid_height: last }: SolanaTransferRow) => (last ?? height) < height;
  const expired = await keepExpired(chain, ready.filter(isPast), { final, lastOf: findReportedHeight });
  const isListed = final.height - listedHeight < MAX_UNLISTED_SLOTS;
  const long = isListed ? ready.filter((row) => !isPast(row)) : [];
  return [...expired, ...(await keepWithExpiredBlockhash(chain, long, ({ signature }) => signature))];
}

/** Returns the transactions that were signed long ago, are not past their last height, and whose blockhash has expired. Never throws. */
function listLongExpired(
  { now }: Pick<Deps, "now">,
  chain: SolanaChain,
  unseen: readonly SolanaTransactionRow[],
  past: readonly SolanaTransactionRow[],
): Promise<SolanaTransactionRow[]> {
  const before = now().getTime() - BLOCKHASH_MS;
  const long = unseen.filter(
    (row) => row.nonce_account === null && row.created_at.getTime() < before && !past.includes(row),
  );
  return keepWithExpiredBlockhash(chain, long.slice(0, MAX_CHECKED), ({ bytes }) => bytes);
}

/** Returns the last height that one endpoint has reported. That suffices for a transaction without our signature: it moves no money. */
const findReportedHeight = (row: TransferRow) => row.last_valid_height ?? undefined;

/**
 * Returns those of these rows whose last height is below the final one, and which two endpoints have passed: one endpoint could end
 * everything in flight by the height that it reports. The confirmed height of the second one suffices, because its final one may
 * stand still. Asks the second endpoint only when the final height has passed. Throws ChainError.
 */
async function keepExpired<R>(
  chain: SolanaChain,
  rows: readonly R[],
  { final, lastOf }: { final: FinalizedState; lastOf: (row: R) => number | undefined },
): Promise<R[]> {
  const listPast = (height: number) => rows.filter((row) => (lastOf(row) ?? height) < height);
  const expired = listPast(final.height);
  if (expired.length === 0 || chain.network.rpc.length < 2) return expired;
  return listPast(Math.min(final.height, await readAgreedHeight(chain)));
}

/**
 * Returns the transactions whose durable nonce has a new final value, and the slot of that value. Ignores values from before
 * the signing, which a lagging endpoint returns.
 */
async function listUsedUp(
  chain: SolanaChain,
  unseen: readonly SolanaTransactionRow[],
  final: FinalizedState,
): Promise<{ slot: number; usedUp: SolanaTransactionRow[] }> {
  const durable = unseen.filter((row) => row.nonce_account !== null);
  if (durable.length === 0) return { slot: 0, usedUp: [] };
  const places = durable.map((row) => row.nonce_account ?? "");
  const { slot, nonces } = await readNonces(chain, places, "finalized");
  const usedUp = durable.filter((row, index) => {
    const nonce = nonces[index];
    return nonce !== undefined && nonce !== row.nonce_value && slot >= findNonceSlot(row, final);
  });
  return { slot, usedUp };
}
