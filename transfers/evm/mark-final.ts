import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type Cursor, raiseFinal } from "../../db/queries/chain-cursors.ts";
import { finishTransactions, listFinishable } from "../../db/queries/transactions.ts";
import type { Db } from "../../db/tables.ts";
import { bookEach } from "../book-each.ts";
import { bookDust } from "../book-unmatched.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Transactions booked in one database transaction. */
const CHUNK = 100;

/**
 * Books the dust of former days and the gas of our transactions up to the cursor's final height, and then stores that height.
 * Called once for all blocks of a pass: no buyer waits for it. After a crash the next pass reads these blocks a second time
 * again, and books what is left.
 */
export async function markFinal(
  deps: TransferDeps,
  { chain }: Pick<EvmChain, "chain">,
  { cursor, handlers }: { cursor: Cursor; handlers: Pick<BookingHandlers, "dust" | "gas"> },
): Promise<void> {
  const { finalNumber: final } = cursor;
  await bookDust(deps, { chain }, { final, book: handlers.dust });
  await bookGas(deps, chain, { final, book: handlers.gas });
  await raiseFinal(deps.db, cursor);
}

/** Marks our transactions in blocks up to a height as final, and books their fees. */
async function bookGas(
  deps: TransferDeps,
  chain: string,
  { final, book }: { final: number; book: BookingHandlers["gas"] },
): Promise<void> {
  for (let full = true; full; ) {
    const rows = await listFinishable(deps.db, { chain, upTo: final, limit: CHUNK });
    const finish = async (db: Db, hashes: readonly string[]) => {
      const spent = await finishTransactions(db, { chain, upTo: final, hashes });
      if (spent.length > 0) await book(db, spent);
      return () => undefined;
    };
    await bookEach(deps, { chain, kind: "transaction", rows, subjectOf: (hash) => hash, book: finish });
    full = rows.length === CHUNK;
  }
}
