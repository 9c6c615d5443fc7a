import type { Cursor, Reached } from "../db/cursors.ts";
import type { Db } from "../db/tables.ts";
import type { SpentTransaction } from "../db/transactions.ts";
import type { ConfirmedTransfer, TransferRow } from "../db/transfers.ts";
import type { AdoptedBook } from "./adopt.ts";
import type { DeclinedBook } from "./decline.ts";
import type { BoundBook } from "./record.ts";
import type { RentBook } from "./solana/rents.ts";
import type { DustBook, StrayBook } from "./unmatched.ts";

/**
 * Progress of a watcher's pass. `readUpTo` is the height up to which everything was read; on Solana, a final slot.
 */
export type Watched = { cursor: Cursor; readUpTo?: number } & Reached;

/**
 * Books confirmed transfers in the database transaction that confirms them, all or none. Returns a function to call after
 * the commit, which notifies waiting requests and counts.
 */
export type Book = (db: Db, confirmed: readonly ConfirmedTransfer[]) => Promise<() => void>;

/** Books the fees of our transactions, in the database transaction that marks them as final. */
export type GasBook = (db: Db, spent: readonly SpentTransaction[]) => Promise<void>;

/**
 * Books transfers that can no longer happen, in the database transaction that ends them. Returns a function to call after
 * the commit.
 */
export type EndedBook = (db: Db, ended: readonly TransferRow[]) => Promise<() => void>;

/** Functions that book what the watcher finds, in the database transaction that moves the transfers. */
export type Books = {
  confirmed: Book;
  ended: EndedBook;
  /** Transfers whose transactions burned gas and moved no money. */
  failed: EndedBook;
  bound: BoundBook;
  stray: StrayBook;
  dust: DustBook;
  gas: GasBook;
  rent: RentBook;
};

/** Functions that book what is found before a transfer is sent, in the database transaction that moves the transfers. */
export type SendBooks = { declined: DeclinedBook; adopted: AdoptedBook };
