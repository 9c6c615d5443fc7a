import { sql } from "kysely";
import { type Member, simulateOwn } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { moveRows } from "../db/moves.ts";
import { claimSighting } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { holdTransfer, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { SCREENED_OUT, simulateScreened } from "./screening.ts";

/**
 * Books transfers whose payers were found to be not served before anything was sent, in the transaction that ends them.
 * Gives what is to be done after the commit.
 */
export type DeclinedBook = (db: Db, declined: readonly TransferRow[]) => Promise<() => void>;

/** A transfer that may go into a batch, with the calls that make it. */
export type RowMember = Member & { row: TransferRow };

/**
 * Simulates a batch and puts what would fail on hold; gives the rest. No gas is spent on what cannot succeed now, and
 * nothing is sent for a payer who is not served.
 */
export async function dropFailing(
  deps: TransferDeps,
  chain: EvmChain,
  { signer, declined }: { signer: Signer; declined: DeclinedBook },
  members: readonly RowMember[],
): Promise<RowMember[]> {
  const good: RowMember[] = [];
  const { outcomes, refused } = await simulate(deps, chain, signer, members);
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    if (row.purpose === "payment" && refused.has(row.payer)) {
      // Somebody else may have made it already: then the money is here.
      if (!(await claimEarlier(deps, row))) await decline(deps, row, declined);
    }
    // The chain does not refuse a push that was made before: whatever is on record of it comes first.
    else if (outcome?.ok && (row.kind !== "push" || !(await claimEarlier(deps, row)))) good.push(member);
    else if (!outcome?.ok && !(await claimEarlier(deps, row))) {
      const trouble = outcome?.reason ?? "the simulation gave no answer";
      deps.log.warn({ transfer: row.id, chain: chain.chain, trouble }, "a transfer would fail now; it is tried again");
      await holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
    }
  }
  return good;
}

async function simulate(deps: TransferDeps, chain: EvmChain, signer: Signer, members: readonly RowMember[]) {
  const [first] = members;
  if (first?.row.kind !== "push") {
    const payers = [...new Set(members.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
    return simulateScreened(deps, chain, { from: signer.address, members, payers });
  }
  const [call] = first.calls;
  const from = { from: signer.address, gas: BigInt(first.gas) };
  return { outcomes: call ? [await simulateOwn(chain.rpc, from, call)] : [], refused: new Set<string>() };
}

/** Nothing of it was ever sent, so it cannot happen any more. */
async function decline(deps: TransferDeps, row: TransferRow, book: DeclinedBook): Promise<void> {
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    const set = { due_at: null, last_trouble: SCREENED_OUT };
    const move = { ids: [row.id], from: "ready" as const, to: "ended" as const, at: deps.now(), set };
    // One that was carried and came back (a reorg, a batch that left it out) may still be somewhere: it is not ended.
    const where = sql<boolean>`not exists (
      select from event where subject = transfer.id and machine = 'transfer' and to_state in ('carried', 'included'))`;
    return (await moveRows(db, "transfer", { ...move, where })).length > 0 ? await book(db, [row]) : undefined;
  });
  if (!afterCommit) return void (await holdTransfer(deps.db, { id: row.id, trouble: SCREENED_OUT, now: deps.now() }));
  deps.log.warn({ transfer: row.id, chain: row.chain }, "a payer is not served: nothing is sent");
  deps.metrics.transferMoves.inc({ chain: row.chain, purpose: row.purpose, from: "ready", to: "ended" });
  afterCommit();
}

/** An authorization may be used up because somebody else has relayed it: then its transfer is made, and found here. */
async function claimEarlier(deps: TransferDeps, row: TransferRow): Promise<boolean> {
  return deps.db.transaction().execute(async (db) => {
    if (!(await claimSighting(db, row))) return false;
    const detail = { relayedBy: "somebody else" };
    await moveRows(db, "transfer", {
      ids: [row.id],
      from: "ready",
      to: "included",
      at: deps.now(),
      detail,
      set: { due_at: null, hold_until: null },
    });
    return true;
  });
}
