import { ChainError, isTransientChainError, isUnreadable } from "../../chains/errors.ts";
import type { Rpc } from "../../chains/evm/evm-rpc.ts";
import type { BlockRange } from "../../chains/evm/log-ranges.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { TokenMovement } from "../../chains/token-movement.ts";
import { moveRows } from "../../db/moves.ts";
import { type Cursor, findBlock } from "../../db/queries/chain-cursors.ts";
import {
  type ExpiredPage,
  type ExpiredTransfer,
  listExpiredAuthorizations,
  lockEndable,
} from "../../db/queries/expired-transfers.ts";
import { hasBooked } from "../../db/queries/unmatched-movements.ts";
import type { Db } from "../../db/tables.ts";
import { bookEach } from "../book-each.ts";
import type { BookEnded } from "../booking-handlers.ts";
import { isLargeAmount } from "../large-amount.ts";
import { type BookUnsolicited, listRecordable, recordBlocks } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { findTransferMovement, listSearchedBlocks, readUsedAuthorizations } from "./authorization-use.ts";

/** Transfers checked in one pass at most. */
const MAX_CHECKED = 50;
/** Endpoints that are asked whether an authorization was used. */
const ASKED_ENDPOINTS = 2;
/** A pass searches for movements for this long, milliseconds: blocks must still be read. */
const SEARCH_MS = 1_500;

const UNUSED = "the authorization expired unused";
const BOOKED = "the authorization expired, and its movement is booked as an exception";

/**
 * The last transfer that the previous pass of this process has checked, by chain, when it left some for this one: transfers
 * that cannot be decided must not take the turn of later ones.
 */
const lastChecked = new WeakMap<EvmChain["endpoints"], ExpiredPage>();
/** The blocks that searches of earlier passes of this process have left, by transfer and endpoint. */
type Searches = Map<string, Map<Rpc, BlockRange>>;
const unfinished = new WeakMap<EvmChain["endpoints"], Searches>();

/**
 * Ends transfers that can no longer happen: the time of the final block is past `validBefore`, and the authorization is
 * unused, cancelled, used for something else, or used by a movement that is booked as an exception. Nothing else ends an
 * accepted transfer. A transfer that did happen, and whose log no reading showed, is found here and recorded. A long search
 * for it goes on in later passes, and delays no other transfer that needs none.
 */
export async function endExpiredAuthorizations(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; signal: AbortSignal; handlers: { ended: BookEnded; unsolicited: BookUnsolicited } },
): Promise<void> {
  const { finalNumber } = args.cursor;
  const final = await findBlock(deps.db, { chain: chain.chain, number: finalNumber });
  if (!final) return;
  const after = lastChecked.get(chain.endpoints);
  const expired = await listExpiredAuthorizations(deps.db, {
    chain: chain.chain,
    at: Math.floor(final.at.getTime() / 1000),
    now: deps.now(),
    limit: MAX_CHECKED,
    after,
  });
  const last = expired.at(-1);
  if (last && expired.length === MAX_CHECKED) lastChecked.set(chain.endpoints, last);
  else lastChecked.delete(chain.endpoints);
  const searches: Searches = unfinished.get(chain.endpoints) ?? new Map();
  unfinished.set(chain.endpoints, searches);
  // An empty page after others says nothing about their searches.
  if (expired.length === 0 && after === undefined) searches.clear();
  if (expired.length === 0) return;
  const limitReads = openLimit(deps, args.signal);
  const viewAt = openViews(chain, async (view) => {
    const read = await readUsedAuthorizations(view, expired, finalNumber);
    return { ...read, chain: view, mayRead: limitReads() };
  });
  // Throws when no endpoint answers.
  await viewAt(0);
  const errors: unknown[] = [];
  const of = { viewAt, searches, at: { number: finalNumber, at: final.at }, handlers: args.handlers };
  // A transfer that cannot be decided now must not keep the others from ending.
  for (const transfer of expired)
    await endIfUnused(deps, chain, transfer, of).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

/**
 * Ends a transfer whose authorization two endpoints do not show as used by it; one is enough for a small amount while the others do not
 * answer. Records its movement if an endpoint shows one.
 */
async function endIfUnused(
  deps: TransferDeps,
  chain: EvmChain,
  transfer: ExpiredTransfer,
  of: {
    viewAt: (index: number) => Promise<View | undefined>;
    searches: Searches;
    at: { number: number; at: Date };
    handlers: { ended: BookEnded; unsolicited: BookUnsolicited };
  },
): Promise<void> {
  const { viewAt, searches, at, handlers } = of;
  const failures: unknown[] = [];
  let answered = 0;
  // One endpoint can show a movement that another one omits, or for which its search fails.
  for (let index = 0; answered < ASKED_ENDPOINTS; index += 1) {
    const view = await viewAt(index);
    if (!view) break;
    if (view.unknown.has(transfer.id)) continue;
    if (view.used.has(transfer.id)) {
      const left = openSearch(searches, transfer.id, view.chain.rpc, listSearchedBlocks(chain, transfer, at));
      let made: TokenMovement | undefined;
      try {
        made = await findTransferMovement(view.chain, transfer, { left, mayRead: view.mayRead });
      } catch (error) {
        if (!isTransientChainError(error)) throw error;
        failures.push(error);
        continue;
      }
      if (made) {
        searches.delete(transfer.id);
        // The money is in the ledger already, and an operator decides about it.
        if (await hasBooked(deps.db, chain.chain, [made]))
          return endOne(deps, transfer, { reason: BOOKED, book: handlers.ended });
        return recordFound(deps, chain, made, handlers.unsolicited);
      }
      if (left.to >= left.from) return;
    }
    answered += 1;
  }
  const failure = failures.find((error) => answered === 0 || !isLasting(error));
  if (failure && answered < ASKED_ENDPOINTS) throw failure;
  if (answered === 0) throw new ChainError("rpc_answer", { detail: `whether transfer ${transfer.id} was made` });
  if (isLargeAmount(chain, chain.tokens.get(transfer.asset), transfer.amount) && answered < ASKED_ENDPOINTS)
    throw new ChainError("rpc_unreachable", { detail: `a second endpoint, for transfer ${transfer.id}` });
  await endOne(deps, transfer, { reason: UNUSED, book: handlers.ended });
  searches.delete(transfer.id);
}

/** Returns true for an error that later answers of the endpoint may have too: it counts as one that does not answer. */
function isLasting(error: unknown): boolean {
  return isUnreadable(error) || (error instanceof ChainError && error.code === "logs_refused");
}

/**
 * Returns a function that opens, for an endpoint, a function that says whether a pass may search another part. The time begins with the first
 * search of the pass. Each pass searches at least one part at each endpoint, so that every search ends.
 */
function openLimit({ now }: Pick<TransferDeps, "now">, signal: AbortSignal): () => () => boolean {
  let until: number | undefined;
  return () => {
    let isFirst = true;
    return () => {
      until ??= now().getTime() + SEARCH_MS;
      const may = isFirst || (!signal.aborted && now().getTime() < until);
      isFirst = false;
      return may;
    };
  };
}

/** Returns the blocks that an endpoint's search for a transfer has left: at first `all` of them. */
function openSearch(searches: Searches, id: string, rpc: Rpc, all: BlockRange): BlockRange {
  const ofTransfer = searches.get(id) ?? new Map<Rpc, BlockRange>();
  const left = ofTransfer.get(rpc) ?? all;
  searches.set(id, ofTransfer.set(rpc, left));
  return left;
}

/** What an endpoint shows of authorizations, and whether a pass may search it further. */
type View = { chain: EvmChain; used: Set<string>; unknown: Set<string>; mayRead: () => boolean };

/**
 * Returns a function that reads from the endpoints that answer, in their order: each one once, and only when its view is asked for.
 * Returns undefined after the last one. When none of them answers, the only view is that of any endpoint.
 */
function openViews(
  chain: EvmChain,
  read: (view: EvmChain) => Promise<View>,
): (index: number) => Promise<View | undefined> {
  const views: View[] = [];
  const unasked = [...chain.endpoints];
  return async (index) => {
    while (views.length <= index) {
      const endpoint = unasked.shift();
      if (!endpoint) break;
      const view = await read({ ...chain, rpc: endpoint.rpc }).catch((error: unknown) => {
        // One that serves another chain, or has no contracts yet, must not keep the others from being asked.
        if (error instanceof ChainError) return undefined;
        throw error;
      });
      if (view) views.push(view);
    }
    if (views.length === 0) views.push(await read(chain));
    return views[index];
  };
}

async function recordFound(
  deps: TransferDeps,
  chain: EvmChain,
  made: TokenMovement,
  unsolicited: BookUnsolicited,
): Promise<void> {
  if ((await listRecordable(deps.db, chain, [made])).length === 0) return;
  deps.log.warn(
    { chain: chain.chain, tx: made.txHash },
    "transfer was made although no reading showed its log; it is recorded now",
  );
  const reading = { seen: [made], landed: [], unsolicited, isLate: true };
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading));
  count();
}

/** Ends a transfer and books its end. The log and the events say the reason. */
async function endOne(
  deps: TransferDeps,
  transfer: ExpiredTransfer,
  { reason, book }: { reason: string; book: BookEnded },
): Promise<void> {
  const { id, chain, purpose, state, last_error: error } = transfer;
  const end = async (db: Db) => {
    if (!(await lockEndable(db, [id], deps.now())).has(id)) return () => undefined;
    const move = { ids: [id], from: state, to: "ended" as const, at: deps.now(), detail: { reason } };
    if ((await moveRows(db, "transfer", { ...move, set: { due_at: null } })).length === 0) return () => undefined;
    const afterCommit = await book(db, [transfer], reason);
    return () => {
      deps.log.warn({ transfer: id, error, reason }, "transfer ended because it can no longer happen");
      deps.metrics.transferTransitions.inc({ chain, purpose, from: state, to: "ended" });
      afterCommit();
    };
  };
  await bookEach(deps, { chain, kind: "ended", rows: [transfer], subjectOf: () => id, book: end });
}
