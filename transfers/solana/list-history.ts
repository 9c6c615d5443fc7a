import { ChainError } from "../../chains/errors.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import {
  type EndpointPage,
  type EndpointPlaces,
  findSignatures,
  type ListedTransaction,
} from "../../chains/solana/transaction-history.ts";
import type { AccountCursor, HeldAccount, ListingProgress } from "../../db/queries/account-cursors.ts";
import type { Listing } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import {
  findPlace,
  isOtherEndpointAwaited,
  type ListPart,
  REQUIRED_ENDPOINTS,
  reportOmissions,
} from "./list-agreement.ts";
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
 * a part of the history. Each page is stored with the places where the listing continues, so a crash loses nothing. Each endpoint
 * continues before the last transaction that it has listed itself: before one that it does not know, it lists nothing. Its list has ended
 * when it shows the newest transaction of the last complete listing, because an endpoint that keeps too little of the
 * history ends its list earlier. When that transaction is older than an endpoint's whole history, which still begins before the last
 * listing, the list ends where the endpoint's does. `final` is a final slot that the endpoints have reached.
 *
 * A listing is complete when all lists have ended, or one has and the others have been waited for: an endpoint can list without end.
 * `isComplete` is true then, and `isAgreed` when the lists of two endpoints have ended. What only one has listed is listed
 * again later (`relistHistory`). Throws ChainError, `history_short` when no endpoint can continue the listing; one that could not
 * begins anew in the next run.
 */
export async function listHistory(
  deps: TransferDeps,
  chain: SolanaChain,
  { cursor, held, final: reached }: { cursor: AccountCursor; held: HeldAccount; final: number },
): Promise<{ isComplete: boolean; isAgreed: boolean }> {
  const { account } = held;
  const { listing } = cursor;
  const until = cursor.until_signature ?? undefined;
  const began = listing ? { at: new Date(listing.at), final: listing.final } : { at: deps.now(), final: reached };
  const since = Math.min(cursor.listed_slot ?? -1, cursor.relist_slot ?? Number.POSITIVE_INFINITY);
  const lists = new Map<string, readonly ListedTransaction[]>();
  let places: EndpointPlaces = listing?.places ?? {};
  let ends: Ends = { newest: listing?.newest ?? undefined, until: listing?.until ?? undefined };
  const answered = new Set(listEnded(places));
  for (let count = 1; count <= MAX_PAGES; count += 1) {
    const found = await findSignatures(
      chain,
      { account, until, atSlot: reached, places },
      {
        isUsable: (one) => isContinuous(one, cursor, reached),
        isEnd: (firstSlot) => isCovered(cursor, firstSlot),
      },
    );
    for (const by of found.answered) answered.add(by);
    const parts = found.pages.map(({ by, page }): ListPart => {
      return { by, ...cutKnown(page, cursor.signature), to: places[by]?.slot };
    });
    reportOmissions(deps, chain, parts, { final: began.final, known: cursor.slot ?? 0 });
    for (const by of found.short) lists.delete(by);
    for (const { by, page } of found.pages) lists.set(by, [...(lists.get(by) ?? []), ...page]);
    places = movePlaces(places, parts, found.short);
    const ended = listEnded(places).length;
    const required = Math.min(REQUIRED_ENDPOINTS, Object.keys(places).length);
    ends = findEnds(ends, [...lists.values()], { final: began.final, required });
    const isEnd = ended > 0 && parts.every((part) => part.isEnd);
    const isLast = isEnd || (ended > 0 && count === MAX_PAGES);
    const isAgreed = ended >= REQUIRED_ENDPOINTS;
    const isAwaited = isLast && isOtherEndpointAwaited(deps, chain, { isAgreed, answered: answered.size, cursor });
    const isComplete = isEnd || (isLast && !isAwaited);
    const progress: ListingProgress = isComplete
      ? { complete: { ...ends, began: isAwaited ? undefined : began, alone: !isAgreed } }
      : { listing: toListing({ ...ends, ...began, places }) };
    const listed = parts.flatMap(({ fresh }) => fresh);
    if (!(await storePage(deps, { held, listed, listedAfter: cursor.listed_at, since, progress }))) break;
    if (isComplete) return { isComplete, isAgreed };
    if (found.pages.length === 0) throw new ChainError("history_short", { detail: `${account} on ${chain.chain}` });
  }
  return { isComplete: false, isAgreed: false };
}

/** Returns the endpoints whose lists have ended. */
function listEnded(places: EndpointPlaces): string[] {
  return Object.keys(places).filter((by) => places[by] === null);
}

/** Returns where endpoints continue after these parts. An endpoint whose list is too short begins anew. */
function movePlaces(places: EndpointPlaces, parts: readonly ListPart[], short: readonly string[]): EndpointPlaces {
  const kept = Object.entries(places).filter(([by]) => !short.includes(by));
  return Object.fromEntries([...kept, ...parts.map((part) => [part.by, findPlace(part)] as const)]);
}

type Ends = { newest: { signature: string; slot: number } | undefined; until: string | undefined };

/**
 * Returns where later listings end: the newest transaction up to slot `final`, and one of an earlier slot, because endpoints can order
 * the transactions of one slot differently. As many endpoints as `required` show both, in the same slots. Those that were found before
 * stand.
 */
function findEnds(
  found: Ends,
  lists: readonly (readonly ListedTransaction[])[],
  { final, required }: { final: number; required: number },
): Ends {
  const describe = ({ signature, slot }: ListedTransaction) => `${slot} ${signature}`;
  const shown = lists.map((list) => new Set(list.map(describe)));
  const isShared = (one: ListedTransaction) => shown.filter((list) => list.has(describe(one))).length >= required;
  const shared = lists
    .flat()
    .filter(isShared)
    .toSorted((one, other) => other.slot - one.slot);
  // Another endpoint may not have reached what is newer.
  const newest = found.newest ?? shared.find(({ slot }) => slot <= final);
  const earlier = shared.find(({ slot }) => slot < (newest?.slot ?? 0));
  return {
    newest: newest && { signature: newest.signature, slot: newest.slot },
    until: found.until ?? earlier?.signature,
  };
}

/** Returns the listing that continues at these places, or null when no endpoint continues it. */
function toListing({
  newest,
  until,
  at,
  final,
  places,
}: Ends & { at: Date; final: number; places: EndpointPlaces }): Listing | null {
  if (Object.keys(places).length === 0) return null;
  return { newest: newest ?? null, until: until ?? null, at: at.toISOString(), final, places };
}

function cutKnown(page: EndpointPage["page"], signature: string | null): Omit<ListPart, "by"> {
  const known = page.findIndex((one) => one.signature === signature);
  return { fresh: known === -1 ? page : page.slice(0, known), isEnd: known !== -1 || page.length === 0 };
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
