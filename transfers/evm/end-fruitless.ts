import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { moveRows } from "../../db/moves.ts";
import { hasNothingInFlight, listUnrelayable } from "../../db/queries/burned-gas.ts";
import { lockEndable } from "../../db/queries/expired-transfers.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { bookEach } from "../book-each.ts";
import type { BookEnded } from "../booking-handlers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { MAX_INCLUSIONS, readGasRules } from "./gas-limits.ts";

/** Transfers ended in one pass at most. */
const MAX_ENDED = 50;

/**
 * Ends buyers' transfers that were included too often without moving money, and those of barred payers. Ends a transfer only
 * when every transaction it was assigned to is final, because the money may still arrive before. The authorization can stay
 * valid for a while: a movement that another relayer makes with it later is booked as an exception.
 */
export async function endUnproductiveTransfers(deps: TransferDeps, chain: EvmChain, book: BookEnded): Promise<void> {
  const { barred } = await readGasRules(deps, chain, { forLane: false });
  const args = {
    chain: chain.chain,
    barred: [...barred],
    inclusions: MAX_INCLUSIONS,
    now: deps.now(),
    limit: MAX_ENDED,
  };
  for (const transfer of await listUnrelayable(deps.db, args)) await endOne(deps, transfer, book);
}

async function endOne(deps: TransferDeps, transfer: TransferRow, book: BookEnded): Promise<void> {
  const { id, chain, purpose, payer } = transfer;
  const reason = "its transactions moved no money";
  const end = async (db: Db) => {
    if (!(await lockEndable(db, [id], deps.now())).has(id)) return () => undefined;
    const move = { ids: [id], from: "ready" as const, to: "ended" as const, at: deps.now(), detail: { reason } };
    const moved = await moveRows(db, "transfer", { ...move, set: { due_at: null }, where: hasNothingInFlight });
    if (moved.length === 0) return () => undefined;
    const afterCommit = await book(db, [transfer], reason);
    return () => {
      deps.log.warn({ transfer: id, chain, payer }, "transfer ended: its transactions burned gas and moved no money");
      deps.metrics.transferTransitions.inc({ chain, purpose, from: "ready", to: "ended" });
      afterCommit();
    };
  };
  await bookEach(deps, { chain, kind: "ended", rows: [transfer], subjectOf: () => id, book: end });
}
