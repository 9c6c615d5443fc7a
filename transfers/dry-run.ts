import type { Hex } from "viem";
import { isApproved } from "../chains/evm/approval.ts";
import type { Member } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import type { Signer } from "../chains/evm/signers/signer.ts";
import { holdTransfer, type TransferRow } from "../db/transfers.ts";
import { dropMade } from "./adopt.ts";
import type { SendBooks } from "./books.ts";
import { claimEarlier, decline } from "./decline.ts";
import type { TransferDeps } from "./deps.ts";
import { simulateScreened } from "./screening.ts";

/** A transfer that may go into a batch, with the calls that make it. */
export type RowMember = Member & { row: TransferRow };

/**
 * Simulates a batch and puts what would fail on hold; gives the rest. No gas is spent on what cannot succeed now, and
 * nothing is sent for a payer who is not served.
 */
export async function dropFailing(
  deps: TransferDeps,
  chain: EvmChain,
  { signer, books }: { signer: Signer; books: SendBooks },
  batch: readonly RowMember[],
): Promise<RowMember[]> {
  const good: RowMember[] = [];
  const payouts = batch.flatMap(({ row }) => (row.purpose === "payment" ? [] : [row]));
  const unmade = new Set(await dropMade(deps, payouts, books.adopted));
  const members = batch.filter(({ row }) => row.purpose === "payment" || unmade.has(row));
  const payers = [...new Set(members.flatMap(({ row }) => (row.purpose === "payment" ? row.payer : [])))];
  const { outcomes, refused } = await simulateScreened(deps, chain, { from: signer.address, members, payers });
  for (const [index, member] of members.entries()) {
    const outcome = outcomes[index];
    const { row } = member;
    if (row.purpose === "payment" && refused.has(row.payer)) {
      // Somebody else may have made it already: then the money is here.
      if (!(await claimEarlier(deps, row))) await decline(deps, row, books.declined);
    } else if (outcome?.ok) good.push(member);
    else if (!(await wasMade(deps, row, books))) {
      const trouble = await explain(chain, row, outcome?.reason ?? "the simulation gave no answer");
      deps.log.warn({ transfer: row.id, chain: chain.chain, trouble }, "a transfer would fail now; it is tried again");
      await holdTransfer(deps.db, { id: row.id, trouble, now: deps.now() });
    }
  }
  return good;
}

/** True for a transfer that fails because it was made meanwhile; it is adopted, or waits to be. */
async function wasMade(deps: TransferDeps, row: TransferRow, books: SendBooks): Promise<boolean> {
  if (row.purpose === "payment") return claimEarlier(deps, row);
  return (await dropMade(deps, [row], books.adopted)).length === 0;
}

/** Why a transfer fails; tokens seldom say that an approval is missing. */
async function explain(chain: EvmChain, row: TransferRow, reason: string): Promise<string> {
  if (row.kind !== "disburse" || (await isApproved(chain, row.token as Hex, row.amount))) return reason;
  return `the treasury has not approved its Disburser: npm run admin -- disburser approve ${row.chain} --asset ${row.asset}`;
}
