import type { Cursor, Reached } from "../db/queries/chain-cursors.ts";
import type { ConfirmedTransfer } from "../db/queries/confirmable-transfers.ts";
import type { SpentTransaction } from "../db/queries/transactions.ts";
import type { TransferRow } from "../db/queries/transfers.ts";
import type { Db } from "../db/tables.ts";
import type { BookAdopted } from "./adopt-payouts.ts";
import type { BookDust, BookUnmatched } from "./book-unmatched.ts";
import type { BookDeclined } from "./decline-transfer.ts";
import type { BookUnsolicited } from "./record-movements.ts";
import type { BookRents } from "./solana/rents.ts";

/**
 * Progress of a watcher's pass. `readUpTo` is the height up to which everything was read; on Solana, the height of a final block.
 */
export type WatchProgress = { cursor: Cursor; readUpTo?: number } & Reached;

/**
 * Books confirmed transfers in the database transaction that confirms them, all or none. Returns a function to call after
 * the commit, which notifies waiting requests and counts.
 */
export type BookConfirmed = (db: Db, confirmed: readonly ConfirmedTransfer[]) => Promise<() => void>;

/** Books the fees of our transactions, in the database transaction that marks them as final. */
type BookGas = (db: Db, spent: readonly SpentTransaction[]) => Promise<void>;

/**
 * Books transfers that can no longer happen, in the database transaction that ends them. `reason` says why, for the events of
 * what they belong to. Returns a function to call after the commit.
 */
export type BookEnded = (db: Db, ended: readonly TransferRow[], reason: string) => Promise<() => void>;

/** A ready transfer that may be sent now. */
type WaitingTransfer = { id: string; smart_wallet: boolean };

/** Functions that book what the watcher finds, in the database transaction that moves the transfers. */
export type BookingHandlers = {
  confirmed: BookConfirmed;
  ended: BookEnded;
  /** Transfers whose transactions burned gas and moved no money. */
  failed: BookEnded;
  unsolicited: BookUnsolicited;
  unmatched: BookUnmatched;
  dust: BookDust;
  gas: BookGas;
  rent: BookRents;
  /**
   * Sends ready transfers: one of a plain key and one of a contract wallet stand for all. Called after new blocks were read,
   * which free lanes and nonces.
   */
  relay: (chain: string, waiting: readonly WaitingTransfer[]) => Promise<void>;
};

/** Functions that book what is found before a transfer is sent, in the database transaction that moves the transfers. */
export type SendHandlers = { declined: BookDeclined; adopted: BookAdopted };
