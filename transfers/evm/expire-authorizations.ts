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
  const views = (await readViews(chain, (view) => readUsedAuthorizations(view, expired, finalNumber))).map((view) => ({
    ...view,
    mayRead: limitReads(deps, args.signal),
  }));
  const answering = (id: string) => views.filter(({ value }) => !value.unknown.has(id));
  const errors: unknown[] = [];
  for (const transfer of expired.filter(({ id }) => answering(id).length > 0)) {
    const end = async () => {
      const at = { number: finalNumber, at: final.at };
      const failures: unknown[] = [];
      // One endpoint can show a movement that the other one omits, or for which its search fails.
      for (const { chain: view, value, mayRead } of answering(transfer.id)) {
        if (!value.used.has(transfer.id)) continue;
        const left = openSearch(searches, transfer.id, view.rpc, listSearchedBlocks(chain, transfer, at));
        let made: TokenMovement | undefined;
        try {
          made = await findTransferMovement(view, transfer, { left, mayRead });
        } catch (error) {
          if (!isTransientChainError(error)) throw error;
          failures.push(error);
          continue;
        }
        if (made) {
          searches.delete(transfer.id);
          // The money is in the ledger already, and an operator decides about it.
          if (await hasBooked(deps.db, chain.chain, [made]))
            return endOne(deps, transfer, { reason: BOOKED, book: args.handlers.ended });
          return recordFound(deps, chain, made, args.handlers.unsolicited);
        }
        if (left.to >= left.from) return;
      }
      const answered = answering(transfer.id).length - failures.length;
      // Only an answer that cannot be read counts as none, because a later one may be the same.
      const failure = failures.find((error) => answered === 0 || !isUnreadable(error));
      if (failure) throw failure;
      if (isLargeAmount(chain, chain.tokens.get(transfer.asset), transfer.amount) && answered < ASKED_ENDPOINTS)
        throw new ChainError("rpc_unreachable", { detail: `a second endpoint, for transfer ${transfer.id}` });
      await endOne(deps, transfer, { reason: UNUSED, book: args.handlers.ended });
      searches.delete(transfer.id);
    };
    // A transfer that cannot be decided now must not keep the others from ending.
    await end().catch((error: unknown) => errors.push(error));
  }
  if (views.some(({ value }) => value.unknown.size > 0))
    errors.push(new ChainError("rpc_answer", { detail: "whether authorizations are used" }));
  if (errors.length > 0) throw errors[0];
}

/**
 * Returns a function that says whether a pass may search another part. Each pass searches at least one, so that every search
 * ends.
 */
function limitReads({ now }: Pick<TransferDeps, "now">, signal: AbortSignal): () => boolean {
  const until = now().getTime() + SEARCH_MS;
  let isFirst = true;
  return () => {
    const may = isFirst || (!signal.aborted && now().getTime() < until);
    isFirst = false;
    return may;
  };
}

/** Returns the blocks that an endpoint's search for a transfer has left: at first `all` of them. */
function openSearch(searches: Searches, id: string, rpc: Rpc, all: BlockRange): BlockRange {
  const ofTransfer = searches.get(id) ?? new Map<Rpc, BlockRange>();
  const left = ofTransfer.get(rpc) ?? all;
  searches.set(id, ofTransfer.set(rpc, left));
  return left;
}

/** Reads from each of the first endpoints that answer, and from any endpoint when none of them does. */
async function readViews<T>(
  chain: EvmChain,
  read: (view: EvmChain) => Promise<T>,
): Promise<{ chain: EvmChain; value: T }[]> {
  const views: { chain: EvmChain; value: T }[] = [];
  for (const { rpc } of chain.endpoints) {
    if (views.length === ASKED_ENDPOINTS) break;
    const view = { ...chain, rpc };
    const value = await read(view).catch((error: unknown) => {
      if (error instanceof ChainError && error.transient) return undefined;
      throw error;
    });
    if (value !== undefined) views.push({ chain: view, value });
  }
  return views.length > 0 ? views : [{ chain, value: await read(chain) }];
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
