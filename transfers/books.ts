import type { Cursor } from "../db/cursors.ts";
import type { AdoptedBook } from "./adopt.ts";
import type { Book, GasBook, StrayBook } from "./confirm.ts";
import type { DeclinedBook } from "./decline.ts";
import type { EndedBook } from "./outlive.ts";
import type { BoundBook } from "./record.ts";
import type { RentBook } from "./solana/rents.ts";

/**
 * How far a turn has come, and when it stood at the head. `readUpTo`: the height up to which everything was read in it, on
 * Solana in final slots.
 */
export type Watched = { cursor: Cursor; reachedHeadAt: Date | undefined; readUpTo?: number };

/** Who books what the watcher finds, in the database transaction that moves the transfers. */
export type Books = {
  confirmed: Book;
  ended: EndedBook;
  bound: BoundBook;
  stray: StrayBook;
  gas: GasBook;
  rent: RentBook;
};

/** Who books what is found before something is sent, in the database transaction that moves the transfers. */
export type SendBooks = { declined: DeclinedBook; adopted: AdoptedBook };
