import type { Cursor, Reached } from "../db/cursors.ts";
import type { AdoptedBook } from "./adopt.ts";
import type { Book, GasBook } from "./confirm.ts";
import type { DeclinedBook } from "./decline.ts";
import type { EndedBook } from "./outlive.ts";
import type { BoundBook } from "./record.ts";
import type { RentBook } from "./solana/rents.ts";
import type { DustBook, StrayBook } from "./unmatched.ts";

/**
 * Progress of a watcher's pass. `readUpTo` is the height up to which everything was read; on Solana, a final slot.
 */
export type Watched = { cursor: Cursor; readUpTo?: number } & Reached;

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
