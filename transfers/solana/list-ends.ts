import type { EndpointPage, ListedTransaction } from "../../chains/solana/transaction-history.ts";
import type { AccountCursor } from "../../db/queries/account-cursors.ts";
import type { ListPart } from "./list-agreement.ts";

/** A minute of slots. No endpoint has deleted what is so new. */
const RECENT_SLOTS = 150;
/** A day of slots. Endpoints may have deleted what is older. */
const OLD_SLOTS = 216_000;

/** The transaction at which lists end. */
export type EndOfLists = { signature: string; slot: number };
type Part = Omit<ListPart, "by">;

/**
 * Returns where the lists of endpoints end: when they show the newest transaction of the last complete listing, because an endpoint that
 * keeps too little of the history ends its list earlier. When that transaction is older than an endpoint's whole history, which still begins
 * before the last listing, the list ends where the endpoint's does.
 *
 * One endpoint that alone has shown that transaction (`shown_by`) may have invented it. The lists of others end at the slot up to which the
 * last listing was complete: what came before was listed by two, or is listed again (`relist_slot`).
 * @param reached a slot that all have reached
 */
export function findEndOfLists(cursor: AccountCursor, reached: number) {
  const { signature, slot, listed_slot: listedSlot, shown_by: shownBy } = cursor;
  const knows = (by: string) => shownBy === null || shownBy === by;
  const since = Math.min(listedSlot ?? slot ?? -1, reached);
  return {
    /** Everything up to this slot is known. */
    known: shownBy === null ? (slot ?? 0) : Math.max(slot ?? 0, since),
    /** Returns after which transaction an endpoint lists. It can refuse to list when it does not know it. */
    untilOf: (by: string) => (knows(by) ? (cursor.until_signature ?? undefined) : undefined),
    isUsable: ({ by, page }: EndpointPage) =>
      (!knows(by) && (page.length > 0 || listedSlot === null)) || isContinuous(page, cursor, reached),
    isEnd: (firstSlot: number) => isCovered(cursor, firstSlot),
    /** Returns the new part of a page. */
    cut: ({ by, page }: EndpointPage): Part => (knows(by) ? cutKnown(page, signature) : cutAfter(page, since)),
  };
}

function cutKnown(page: EndpointPage["page"], signature: string | null): Part {
  const known = page.findIndex((one) => one.signature === signature);
  return { fresh: known === -1 ? page : page.slice(0, known), isEnd: known !== -1 || page.length === 0 };
}

function cutAfter(page: EndpointPage["page"], since: number): Part {
  return { fresh: page.filter(({ slot }) => slot > since), isEnd: (page.at(-1)?.slot ?? -1) <= since };
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
