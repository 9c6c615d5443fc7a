import { ChainError } from "../../chains/errors.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import {
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
import { type EndOfLists, findEndOfLists } from "./list-ends.ts";
import { storePage } from "./store-listed.ts";

/** Pages of 1,000 signatures (at most endpoints) that one run lists. A longer listing continues in the next run. */
export const MAX_PAGES = 10;

/**
 * Lists the transactions that named an account since the last complete listing, from the newest one backwards, and stores
 * them to be read. One call to each endpoint lists 1,000 transactions; what any of them lists is stored, because an endpoint can lack
 * a part of the history. Each page is stored with the places where the listing continues, so a crash loses nothing. Each endpoint
 * continues before the last transaction that it has listed itself: before one that it does not know, it lists nothing. Its list has ended
 * at the end of the last complete listing (`findEndOfLists`). `final` is a final slot that the endpoints have reached.
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
  const end = findEndOfLists(cursor, reached);
  const began = listing ? { at: new Date(listing.at), final: listing.final } : { at: deps.now(), final: reached };
  const since = Math.min(cursor.listed_slot ?? -1, cursor.relist_slot ?? Number.POSITIVE_INFINITY);
  const lists = new Map<string, readonly ListedTransaction[]>();
  let places: EndpointPlaces = listing?.places ?? {};
  let ends: Ends = listing
    ? { newest: listing.newest ?? undefined, until: listing.until ?? undefined, by: listing.by ?? undefined }
    : none;
  const answered = new Set(listEnded(places));
  for (let count = 1; count <= MAX_PAGES; count += 1) {
    const found = await findSignatures(chain, { account, untilOf: end.untilOf, atSlot: reached, places }, end);
    for (const by of found.answered) answered.add(by);
    const parts = found.pages.map(({ by, page }): ListPart => {
      return { by, ...end.cut({ by, page }), to: places[by]?.slot };
    });
    reportOmissions(deps, chain, parts, { final: began.final, known: end.known });
    for (const by of found.short) lists.delete(by);
    for (const { by, page } of found.pages) lists.set(by, [...(lists.get(by) ?? []), ...page]);
    places = movePlaces(places, parts, found.short);
    const ended = listEnded(places).length;
    const [alone, ...others] = Object.keys(places);
    const isOnly = chain.network.rpc.length < REQUIRED_ENDPOINTS;
    const by = others.length === 0 && !isOnly ? alone : undefined;
    ends = findEnds(ends, lists, { final: began.final, isOnly, by });
    const isEnd = ended > 0 && parts.every((part) => part.isEnd);
    const isLast = isEnd || (ended > 0 && count === MAX_PAGES);
    const isAgreed = ended >= REQUIRED_ENDPOINTS;
    const isAwaited = isLast && isOtherEndpointAwaited(deps, chain, { isAgreed, answered: answered.size, cursor });
    const isComplete = isEnd || (isLast && !isAwaited);
    const progress: ListingProgress = isComplete
      ? {
          complete: {
            ...(isAgreed && ends.by !== undefined ? none : ends),
            began: isAwaited ? undefined : began,
            alone: !isAgreed,
          },
        }
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

/** Where later listings end, and the endpoint that alone has shown it. */
type Ends = { newest: EndOfLists | undefined; until: string | undefined; by: string | undefined };
const none: Ends = { newest: undefined, until: undefined, by: undefined };

/**
 * Returns where later listings end: the newest transaction up to slot `final`, and one of an earlier slot, because endpoints can order
 * the transactions of one slot differently. Two endpoints show both, in the same slots, unless the network has only one. Those that were
 * found before stand. While only endpoint `by` lists, they are its own.
 */
function findEnds(
  found: Ends,
  lists: ReadonlyMap<string, readonly ListedTransaction[]>,
  { final, isOnly, by }: { final: number; isOnly: boolean; by: string | undefined },
): Ends {
  const required = isOnly ? 1 : REQUIRED_ENDPOINTS;
  const agreed = findShared(found.by === undefined ? found : none, lists, { final, required });
  if (agreed.newest) return agreed;
  return by === undefined
    ? found
    : { ...findShared(found.by === by ? found : none, lists, { final, required: 1 }), by };
}

/** Returns the newest transactions that as many lists as `required` show. */
function findShared(
  found: Ends,
  all: ReadonlyMap<string, readonly ListedTransaction[]>,
  { final, required }: { final: number; required: number },
): Ends {
  const lists = [...all.values()];
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
    by: undefined,
  };
}

/** Returns the listing that continues at these places, or null when no endpoint continues it. */
function toListing({
  newest,
  until,
  by,
  at,
  final,
  places,
}: Ends & { at: Date; final: number; places: EndpointPlaces }): Listing | null {
  if (Object.keys(places).length === 0) return null;
  return { newest: newest ?? null, until: until ?? null, by: by ?? null, at: at.toISOString(), final, places };
}
