import type { Chain } from "../chains/chain.ts";
import { confirmTransfers } from "../db/queries/confirmable-transfers.ts";
import type { Db } from "../db/tables.ts";
import { bookEach } from "./book-each.ts";
import type { BookConfirmed } from "./booking-handlers.ts";
import { traceTransfers } from "./trace-transfers.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Confirms and books transfers in one database transaction. Stores a transfer that cannot be booked as a failed booking. */
export async function confirmChunk(
  deps: TransferDeps,
  { chain }: Pick<Chain, "chain">,
  confirmable: readonly { id: string; payment_id: string | null }[],
  args: { final: number; book: BookConfirmed },
): Promise<void> {
  const book = async (db: Db, rows: readonly { id: string }[]) => {
    const ids = rows.map(({ id }) => id);
    const confirmed = await confirmTransfers(db, { ids, upTo: args.final, at: deps.now() });
    const afterCommit = await args.book(db, confirmed);
    return () => {
      for (const { purpose } of confirmed)
        deps.metrics.transferTransitions.inc({ chain, purpose, from: "included", to: "confirmed" });
      afterCommit();
    };
  };
  if (confirmable.length === 0) return;
  const of = { chain, transfers: confirmable };
  const bookAll = () => bookEach(deps, { chain, kind: "transfer", rows: confirmable, subjectOf: ({ id }) => id, book });
  await traceTransfers(deps, "book", of, bookAll);
}
