import { readAgreeFrom } from "../chains/endpoints.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { ChainFault } from "../chains/faults.ts";
import type { SeenTransfer } from "../chains/movements.ts";
import { type Cursor, findBlock } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import { listOutlived, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { bookEach } from "./failed-bookings.ts";
import { type BoundBook, keepRecordable, recordBlocks } from "./record.ts";
import { findMade, readUsed } from "./uses.ts";

/** Books transfers that can no longer come, in the transaction that ends them. Gives what is to be done after the commit. */
export type EndedBook = (db: Db, ended: readonly TransferRow[]) => Promise<() => void>;

/** Transfers looked at in one turn. */
const MOST = 50;
/** Endpoints that are asked whether an authorization was used. */
const VIEWS = 2;
/**
 * Ends transfers whose money can no longer come: the final chain's own clock is past `validBefore`, and the
 * authorization is unused, or was used for something else or cancelled. Nothing less ends an accepted transfer. One
 * that was made after all, and whose log no reading has shown, is found here and recorded.
 */
export async function endOutlived(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; books: { ended: EndedBook; bound: BoundBook } },
): Promise<void> {
  const { finalNumber } = args.cursor;
  const final = await findBlock(deps.db, { chain: chain.chain, number: finalNumber });
  if (!final) return;
  const outlived = await listOutlived(deps.db, {
    chain: chain.chain,
    at: Math.floor(final.at.getTime() / 1000),
    limit: MOST,
  });
  if (outlived.length === 0) return;
  const views = await readViews(chain, (view) => readUsed(view, outlived, finalNumber));
  const unknown = new Set(views.flatMap(({ value }) => [...value.unknown]));
  const troubles: unknown[] = [];
  for (const transfer of outlived.filter(({ id }) => !unknown.has(id))) {
    const end = async () => {
      const at = { number: finalNumber, at: final.at };
      // Whatever one endpoint leaves out the other one may show.
      for (const { chain: view, value } of views) {
        const made = value.used.has(transfer.id) ? await findMade(view, transfer, at) : undefined;
        if (made) return recordFound(deps, chain, made, args.books.bound);
      }
      if (isLarge(chain, transfer) && views.length < VIEWS)
        throw new ChainFault("rpc_unreachable", { detail: `a second endpoint, for transfer ${transfer.id}` });
      await endOne(deps, transfer, args.books.ended);
    };
    // What cannot be said of one transfer now must not keep the others from their end.
    await end().catch((error: unknown) => troubles.push(error));
  }
  if (unknown.size > 0) troubles.push(new ChainFault("rpc_answer", { detail: "whether authorizations are used" }));
  if (troubles.length > 0) throw troubles[0];
}

/** What the first endpoints that answer say, each by itself; all as one when none does by itself. */
async function readViews<T>(
  chain: EvmChain,
  read: (view: EvmChain) => Promise<T>,
): Promise<{ chain: EvmChain; value: T }[]> {
  const views: { chain: EvmChain; value: T }[] = [];
  for (const { rpc } of chain.endpoints) {
    if (views.length === VIEWS) break;
    const view = { ...chain, rpc };
    const value = await read(view).catch((error: unknown) => {
      if (error instanceof ChainFault && error.transient) return undefined;
      throw error;
    });
    if (value !== undefined) views.push({ chain: view, value });
  }
  return views.length > 0 ? views : [{ chain, value: await read(chain) }];
}

/** True for a transfer whose end two endpoints have to agree on. */
function isLarge(chain: EvmChain, { asset, amount }: TransferRow): boolean {
  const token = chain.tokens.get(asset);
  const limit = token && readAgreeFrom(chain.network, token);
  return limit !== undefined && amount >= limit;
}

async function recordFound(deps: TransferDeps, chain: EvmChain, made: SeenTransfer, bound: BoundBook): Promise<void> {
  if ((await keepRecordable(deps.db, chain, [made])).length === 0) return;
  deps.log.warn({ chain: chain.chain, tx: made.txHash }, "a transfer had been made and no reading had shown it");
  const reading = { seen: [made], landed: [], bound };
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading));
  count();
}

async function endOne(deps: TransferDeps, transfer: TransferRow, book: EndedBook): Promise<void> {
  const { id, chain, purpose, state, last_trouble: trouble } = transfer;
  const end = async (db: Db) => {
    const from = state as "ready" | "carried" | "awaited";
    const move = { ids: [id], from, to: "ended" as const, at: deps.now(), set: { due_at: null } };
    if ((await moveRows(db, "transfer", move)).length === 0) return () => undefined;
    const afterCommit = await book(db, [transfer]);
    return () => {
      deps.log.warn({ transfer: id, trouble }, "a transfer's authorization has run out without it");
      deps.metrics.transferMoves.inc({ chain, purpose, from: state, to: "ended" });
      afterCommit();
    };
  };
  await bookEach(deps, { chain, kind: "ended", rows: [transfer], subjectOf: () => id, book: end });
}
