import type { EvmChain } from "../chains/evm/open.ts";
import { isSettledInFlight, listFruitless } from "../db/burned-gas.ts";
import { moveRows } from "../db/moves.ts";
import type { TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { MOST_INCLUSIONS, readGasRules } from "./gas-limits.ts";
import type { EndedBook } from "./outlive.ts";

/** Transfers ended in one pass. */
const MOST = 50;

/**
 * Ends buyers' transfers that were included too often without moving money, and those of payers that are barred. Only
 * once every transaction that carried one is final: before, the money may still come, and the payment stays as it is.
 * The authorization may be good for a while: money that another relayer makes of it later is an exception.
 */
export async function endFruitless(deps: TransferDeps, chain: EvmChain, book: EndedBook): Promise<void> {
  const { barred } = await readGasRules(deps, chain, { forLane: false });
  const args = { chain: chain.chain, barred: [...barred], inclusions: MOST_INCLUSIONS, limit: MOST };
  for (const transfer of await listFruitless(deps.db, args)) await end(deps, transfer, book);
}

async function end(deps: TransferDeps, transfer: TransferRow, book: EndedBook): Promise<void> {
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    const detail = { reason: "its transactions moved no money" };
    const move = { ids: [transfer.id], from: "ready" as const, to: "ended" as const, at: deps.now(), detail };
    const moved = await moveRows(db, "transfer", { ...move, set: { due_at: null }, where: isSettledInFlight });
    return moved.length === 0 ? undefined : await book(db, [transfer]);
  });
  if (!afterCommit) return;
  const { id, chain, purpose, payer } = transfer;
  deps.log.warn(
    { transfer: id, chain, payer },
    "a transfer is given up: its transactions burned gas and moved no money",
  );
  deps.metrics.transferMoves.inc({ chain, purpose, from: "ready", to: "ended" });
  afterCommit();
}
