import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { findSignatures, type ListedTransaction } from "../../chains/solana/transaction-history.ts";
import {
  type AccountCursor,
  type HeldAccount,
  type ListingProgress,
  storeListing,
} from "../../db/queries/account-cursors.ts";
import { insertEntries, keepKnownNonces } from "../../db/queries/history-entries.ts";
import { listOwnHashes } from "../../db/queries/solana-transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Pages of 1,000 signatures (at most endpoints) that one run lists. A longer listing continues in the next run. */
const MAX_PAGES = 10;
/** A minute of slots. No endpoint has deleted what is so new. */
const RECENT_SLOTS = 150;
/** A day of slots. Endpoints may have deleted what is older. */
const OLD_SLOTS = 216_000;
/** Matches the natural keys of our transfers in a memo. */
const NONCE = /0x[0-9a-f]{64}/g;

/**
 * Lists the transactions that named an account since the last complete listing, from the newest one backwards, and stores
 * them to be read. One call lists 1,000 transactions. Each page is stored with the position where the listing continues, so
 * a crash loses nothing. A listing is complete when it shows the newest transaction of the last complete one, because an endpoint
 * that keeps too little of the history ends its list earlier. When that transaction is older than an endpoint's whole history, which
 * still begins before the last listing, the list ends where the endpoint's does. `final` is a final slot that the endpoints have
 * reached. Returns true when the listing is complete. Throws ChainError, `history_short` when no endpoint can continue the listing.
 */
export async function listHistory(
  deps: TransferDeps,
  chain: SolanaChain,
  { cursor, held, final }: { cursor: AccountCursor; held: HeldAccount; final: number },
): Promise<boolean> {
  const { account } = held;
  const until = cursor.until_signature ?? undefined;
  let listing = cursor.listing;
  const at = listing ? new Date(listing.at) : deps.now();
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const args = { account, until, before: listing?.before, atSlot: final };
    const page = await findSignatures(chain, args, {
      isUsable: (one) => isContinuous(one, cursor, final),
      isEnd: (firstSlot) => isCovered(cursor, firstSlot),
    });
    const last = page.at(-1);
    const known = page.findIndex(({ signature }) => signature === cursor.signature);
    const fresh = known === -1 ? page : page.slice(0, known);
    const isComplete = last === undefined || known !== -1;
    const newest = listing ? { signature: listing.newest, slot: listing.slot } : page[0];
    // Endpoints can order the transactions of one slot differently, so the next listing ends in an earlier slot.
    const earlier = listing?.until ?? page.find(({ slot }) => slot < (newest?.slot ?? 0))?.signature;
    listing =
      newest && last
        ? {
            newest: newest.signature,
            slot: newest.slot,
            until: earlier ?? null,
            at: at.toISOString(),
            final: listing?.final ?? final,
            before: last.signature,
          }
        : listing;
    const complete = { newest, until: earlier, at, final: listing?.final ?? final };
    const progress: ListingProgress = isComplete || !listing ? { complete } : { listing };
    if (!(await storePage(deps, { cursor, held, fresh, progress }))) return false;
    if (isComplete) return true;
  }
  return false;
}

/**
 * Returns true if a page shows the newest transaction of the last complete listing, or continues towards it. An endpoint whose
 * history begins later lists nothing before that, or nothing at all. An endpoint that lists older slots without the transaction has
 * lost a part of its history.
 *
 * An empty page is the end of the first listing of an account that has never shown a transaction. It is also the end when the last
 * listing is recent, and its newest transaction absent, or so old that endpoints may have deleted it. Without this, each listing of an
 * account that is rarely used would ask all endpoints.
 */
function isContinuous(page: readonly ListedTransaction[], cursor: AccountCursor, final: number): boolean {
  const { signature, slot, listed_slot: listedSlot } = cursor;
  const last = page.at(-1);
  if (last !== undefined)
    return signature === null || last.slot >= (slot ?? 0) || page.some((one) => one.signature === signature);
  const isOld = signature === null || (slot ?? 0) < final - OLD_SLOTS;
  return listedSlot === null ? signature === null : isOld && final - listedSlot <= RECENT_SLOTS;
}

/**
 * Returns true if an endpoint whose history begins at a slot shows everything since the last complete listing, although that listing
 * found no transaction, or one that the endpoint cannot show any more.
 */
function isCovered({ slot, listed_slot: listedSlot }: AccountCursor, firstSlot: number): boolean {
  return listedSlot !== null && firstSlot <= listedSlot && (slot === null || slot < firstSlot);
}

type Page = {
  cursor: AccountCursor;
  held: HeldAccount;
  fresh: readonly ListedTransaction[];
  progress: ListingProgress;
};

/** Stores entries and progress in one database transaction. Returns false when another reader has taken the account. */
async function storePage(deps: TransferDeps, { cursor, held, fresh, progress }: Page): Promise<boolean> {
  const landed = fresh.filter(({ failed }) => !failed);
  const hashes = landed.map(({ signature }) => signature);
  const { chain } = held;
  return deps.db.transaction().execute(async (db) => {
    if (!(await storeListing(db, held, progress))) return false;
    // The outcome of our own transactions comes from their statuses.
    const own = await listOwnHashes(db, { chain, hashes });
    const foreign = landed.filter(({ signature }) => !own.has(signature));
    const urgent = await listNamed(db, chain, foreign);
    const entries = foreign.map(({ signature, slot }) => ({
      signature,
      slot,
      listed_after: cursor.listed_at,
      urgent: urgent.has(signature),
      due_at: deps.now(),
    }));
    await insertEntries(db, held, entries);
    return true;
  });
}

/** Returns the transactions whose memo names a payment or payout of ours. Only the reading order depends on the memo. */
async function listNamed(db: Db, chain: string, listed: readonly ListedTransaction[]): Promise<Set<string>> {
  const named = listed.map(({ signature, memo }) => ({ signature, nonces: memo.match(NONCE) ?? [] }));
  const known = await keepKnownNonces(
    db,
    chain,
    named.flatMap(({ nonces }) => nonces),
  );
  return new Set(named.filter(({ nonces }) => nonces.some((nonce) => known.has(nonce))).map((one) => one.signature));
}
