import {
  findReportedSettlement,
  listEntriesOf,
  listEventsOf,
  listSubjects,
  listTransactionsOf,
  type ReportedSettlement,
} from "../../db/queries/payment-reports.ts";
import type { Db } from "../../db/tables.ts";

/** All recorded events of one payment, in chronological order. */
export type History = {
  /** State changes of the payment, its attempts, its transfers, its settlement and its refunds. */
  moves: {
    at: Date;
    machine: string;
    subject: string;
    from: string;
    to: string;
    detail: Record<string, unknown> | null;
  }[];
  transactions: {
    lane: string;
    nonce: number;
    replacement: number;
    hash: string;
    state: string;
    signedAt: Date;
    block: number | null;
    gasUsed: bigint | null;
    /** What it cost, in the smallest unit of the chain's own coin. */
    fee: bigint | null;
  }[];
  settlement: {
    id: string;
    state: string;
    amount: bigint;
    asset: string;
    destination: string | null;
    txHash: string | null;
    paidAt: Date | null;
    /** The obstacle that blocks its payout queue, if there is one. */
    blockedBy: string | null;
  } | null;
  ledger: { at: Date; kind: string; account: string; asset: string; amount: bigint; txHash: string | null }[];
};

/** Returns the history of a payment, for the demo and the operator's command line. */
export async function listHistory({ db }: { db: Db }, paymentId: string): Promise<History> {
  const ids = await listSubjects(db, paymentId);
  const events = await listEventsOf(db, ids);
  const transactions = await listTransactionsOf(db, ids);
  const settlement = await findReportedSettlement(db, paymentId);
  const entries = await listEntriesOf(db, ids);
  return {
    moves: events.map(({ at, machine, subject, from_state: from, to_state: to, detail }) => ({
      at,
      machine,
      subject,
      from,
      to,
      detail,
    })),
    transactions: transactions.map((row) => ({
      lane: row.lane_id,
      nonce: row.nonce,
      replacement: row.replacement,
      hash: row.hash,
      state: row.state,
      signedAt: row.created_at,
      block: row.block_number,
      gasUsed: row.gas_used,
      fee: row.fee,
    })),
    settlement: settlement ? toSettlement(settlement) : null,
    ledger: entries.map(({ tx_hash: txHash, ...row }) => ({ ...row, txHash })),
  };
}

function toSettlement(row: ReportedSettlement): NonNullable<History["settlement"]> {
  const { tx_hash: txHash, paid_at: paidAt, blocked_by: blockedBy, ...rest } = row;
  return { ...rest, txHash, paidAt, blockedBy };
}
