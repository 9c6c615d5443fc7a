import type { Cursor, Reached } from "../db/cursors.ts";
import type { Book, GasBook, StrayBook } from "./confirm.ts";
import type { EndedBook } from "./outlive.ts";
import type { BoundBook } from "./record.ts";
import type { RentBook } from "./solana/rents.ts";

/** How far a pass has come. */
export type Watched = { cursor: Cursor } & Reached;

/** Who books what the watcher finds, in the database transaction that moves the transfers. */
export type Books = {
  confirmed: Book;
  ended: EndedBook;
  bound: BoundBook;
  stray: StrayBook;
  gas: GasBook;
  rent: RentBook;
};
