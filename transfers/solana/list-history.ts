import { ChainError } from "../../chains/errors.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { type EndpointPage, findSignatures, type ListedTransaction } from "../../chains/solana/transaction-history.ts";
import {
  type AccountCursor,
  type HeldAccount,
  type ListingProgress,
  storeListing,
} from "../../db/queries/account-cursors.ts";
import type { Listing } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { isOtherEndpointAwaited, type ListPart, REQUIRED_ENDPOINTS, reportOmissions } from "./list-agreement.ts";
import { storePage } from "./store-listed.ts";

/** Pages of 1,000 signatures (at most endpoints) that one run lists. A longer listing continues in the next run. */
export const MAX_PAGES = 10;
/** A minute of slots. No endpoint has deleted what is so new. */
const RECENT_SLOTS = 150;
/** A day of slots. Endpoints may have deleted what is older. */
const OLD_SLOTS = 216_000;

/**
 * Lists the transactions that named an account since the last complete listing, from the newest one backwards, and stores
 * them to be read. One call to each endpoint lists 1,000 transactions; what any of them lists is stored, because an endpoint can lack
 * a part of the history. Each page is stored with the position where the listing continues, so a crash loses nothing. A listing is
 * complete when each endpoint shows the newest transaction of the last complete one, because an endpoint that keeps too little of the
 * history ends its list earlier. When that transaction is older than an endpoint's whole history, which still begins before the last
 * listing, the list ends where the endpoint's does. `final` is a final slot that the endpoints have reached.
 *
 * `isComplete` is true when the listing is complete, `isAgreed` when two endpoints have made it. What only one has listed is listed
 * again later (`relistHistory`). Throws ChainError, `history_short` when no endpoint can continue the listing. The next run then begins
 * anew: the transaction before which this one would continue may not exist.
 */
export async function listHistory(
  deps: TransferDeps,
  chain: SolanaChain,
  { cursor, held, final: reached }: { cursor: AccountCursor; held: HeldAccount; final: number },
): Promise<{ isComplete: boolean; isAgreed: boolean }> {
  const { account } = held;
  const until = cursor.until_signature ?? undefined;
  let listing = cursor.listing;
  const began = listing ? { at: new Date(listing.at), final: listing.final } : { at: deps.now(), final: reached };
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const args = { account, until, before: listing?.before, atSlot: reached };
    const { pages, answered } = await findSignatures(chain, args, {
      isUsable: (one) => isContinuous(one, cursor, reached),
      isEnd: (firstSlot) => isCovered(cursor, firstSlot),
    }).catch(async (error: unknown) => {
      if (listing && error instanceof ChainError && error.code === "history_short")
        await storeListing(deps.db, held, { listing: null });
      throw error;
    });
    const parts = pages.map(({ by, page }) => ({ by, ...cutKnown(page, cursor.signature) }));
    reportOmissions(deps, chain, parts, { final: began.final, known: cursor.slot ?? 0 });
    const found = findEnds(listing, pages, began.final);
    const agreed = pages.length >= REQUIRED_ENDPOINTS && (listing?.agreed ?? true);
    const isAwaited = isOtherEndpointAwaited(deps, chain, { isAgreed: agreed, answered, cursor });
    const before = findNext(parts)?.signature;
    listing = toListing({ ...found, ...began, agreed, before });
    const complete = { ...found, began: isAwaited ? undefined : began, alone: !agreed };
    const progress: ListingProgress = listing ? { listing } : { complete };
    const since = Math.min(cursor.listed_slot ?? -1, cursor.relist_slot ?? Number.POSITIVE_INFINITY);
    const listed = parts.flatMap(({ fresh }) => fresh);
    if (!(await storePage(deps, { held, listed, listedAfter: cursor.listed_at, since, progress })))
      return { isComplete: false, isAgreed: false };
    if (!listing) return { isComplete: true, isAgreed: agreed };
  }
  return { isComplete: false, isAgreed: false };
}

type Ends = { newest: { signature: string; slot: number } | undefined; until: string | undefined };

/**
 * Returns where later listings end: the newest transaction up to slot `final`, and one of an earlier slot, because endpoints can order
 * the transactions of one slot differently. All endpoints show both. Those that a listing in progress has found stand.
 */
function findEnds(listing: Listing | null, pages: readonly EndpointPage[], final: number): Ends {
  const common = keepCommon(pages);
  // Another endpoint may not have reached what is newer.
  const newest = listing?.newest ?? common.find(({ slot }) => slot <= final);
  const earlier = common.find(({ slot }) => slot < (newest?.slot ?? 0));
  return {
    newest: newest && { signature: newest.signature, slot: newest.slot },
    until: listing?.until ?? earlier?.signature,
  };
}

/** Returns the listing that continues before a signature, or null when it has ended. */
function toListing({
  newest,
  until,
  at,
  final,
  before,
  agreed,
}: Ends & { at: Date; final: number; before: string | undefined; agreed: boolean }): Listing | null {
  if (before === undefined) return null;
  return { newest: newest ?? null, until: until ?? null, at: at.toISOString(), final, before, agreed };
}

function cutKnown(page: EndpointPage["page"], signature: string | null): Omit<ListPart, "by"> {
  const known = page.findIndex((one) => one.signature === signature);
  return { fresh: known === -1 ? page : page.slice(0, known), isEnd: known !== -1 || page.length === 0 };
}

/** Returns the transaction before which lists continue: the newest one that ends a part. Returns undefined when all lists have ended. */
function findNext(parts: readonly ListPart[]): ListedTransaction | undefined {
  const ends = parts.flatMap(({ fresh, isEnd }) => (isEnd ? [] : fresh.slice(-1)));
  return ends.toSorted((one, other) => other.slot - one.slot)[0];
}

/** Returns the transactions of the first page that all pages show. */
function keepCommon([first, ...others]: readonly EndpointPage[]): readonly ListedTransaction[] {
  const shown = others.map(({ page }) => new Set(page.map(({ signature }) => signature)));
  return first?.page.filter(({ signature }) => shown.every((one) => one.has(signature))) ?? [];
}

/**
 * Returns true if a page shows the newest transaction of the last complete listing, or continues towards it. An endpoint whose
 * history begins later lists nothing before that, or nothing at all. An endpoint that lists older slots without the transaction has
 * lost a part of its history.
 *
 * An empty page is the end of the first listing of an account that has never shown a transaction. It is also the end when the last
 * listing is recent, and its newest transaction absent, or so old that endpoints may have deleted it. Without this, each listing of an
 * account that is rarely used would ask where the histories of the endpoints begin.
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
