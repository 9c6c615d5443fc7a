import type { Chain } from "../chains/open.ts";
import type { Db } from "../db/tables.ts";
import { confirmTransfers } from "../db/transfers.ts";
import type { Book } from "./books.ts";
import type { TransferDeps } from "./deps.ts";
import { bookEach } from "./failed-bookings.ts";

/** Confirms and books transfers in one database transaction. Stores a transfer that cannot be booked as a failed booking. */
export async function confirmChunk(
  deps: TransferDeps,
  { chain }: Pick<Chain, "chain">,
  confirmable: readonly { id: string }[],
  args: { final: number; book: Book },
): Promise<void> {
  const book = async (db: Db, rows: readonly { id: string }[]) => {
    const ids = rows.map(({ id }) => id);
    const confirmed = await confirmTransfers(db, { ids, upTo: args.final, at: deps.now() });
    const afterCommit = await args.book(db, confirmed);
    return () => {
      for (const { purpose } of confirmed)
        deps.metrics.transferMoves.inc({ chain, purpose, from: "included", to: "confirmed" });
      afterCommit();
    };
  };
  await bookEach(deps, { chain, kind: "transfer", rows: confirmable, subjectOf: ({ id }) => id, book });
}
