import type { Cursor, Reached } from "../db/cursors.ts";
import type { AdoptedBook } from "./adopt.ts";
import type { Book, GasBook } from "./confirm.ts";
import type { DeclinedBook } from "./decline.ts";
import type { EndedBook } from "./outlive.ts";
import type { BoundBook } from "./record.ts";
import type { RentBook } from "./solana/rents.ts";
import type { DustBook, StrayBook } from "./unmatched.ts";

/**
 * How far a pass has come. `readUpTo`: the height up to which everything was read by then, on Solana in final slots.
 */
export type Watched = { cursor: Cursor; readUpTo?: number } & Reached;

/** Who books what the watcher finds, in the database transaction that moves the transfers. */
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

/** Who books what is found before something is sent, in the database transaction that moves the transfers. */
export type SendBooks = { declined: DeclinedBook; adopted: AdoptedBook };
