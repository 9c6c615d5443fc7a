import { listBalances } from "../../db/queries/ledger-balances.ts";
import { listStatementRows, type StatementRow } from "../../db/queries/merchant-statements.ts";
import type { Db } from "../../db/tables.ts";
import { accounts } from "./ledger-groups.ts";

/** One change of a merchant's balance. Amounts in minor units of the asset. */
type StatementLine = {
  at: Date;
  kind: StatementRow["kind"];
  paymentId: string | null;
  referenceId: string | null;
  /** The buyer's amount and the operator's fee; payments only. A converted payment is listed net, with a fee of 0. */
  gross: bigint | null;
  fee: bigint | null;
  /** The change of the balance. Negative for settlements and refunds. */
  change: bigint;
  balance: bigint;
  /** The receiver: a CAIP-10 account for a settlement, an address for a refund. */
  to: string | null;
  /** The transaction that proves it; null while a payout or refund is in transit. */
  txHash: string | null;
};

/**
 * A merchant's balance in one asset over a period, and its changes. `from` and `until` are UTC days, both inclusive.
 */
export type Statement = {
  merchantId: string;
  asset: string;
  from: string;
  until: string;
  opening: bigint;
  closing: bigint;
  payments: bigint;
  fees: bigint;
  settled: bigint;
  refunded: bigint;
  lines: StatementLine[];
};

/** Returns a merchant's statements of a period, one for each asset with a balance or a change. */
export async function readStatements(
  { db }: { db: Db },
  args: { merchantId: string; from: string; until: string },
): Promise<Statement[]> {
  const { merchantId, from, until } = args;
  const account = accounts.payable(merchantId);
  const dayBefore = new Date(Date.parse(from) - 86_400_000).toISOString().slice(0, 10);
  const before = await listBalances(db, { account, day: dayBefore });
  const rows = await listStatementRows(db, { account, from, until });
  const assets = new Set([...before, ...rows].map(({ asset }) => asset));
  return [...assets].sort().map((asset) => {
    // A balance owed to the merchant is a credit, so its sign is inverted.
    const opening = -(before.find((one) => one.asset === asset)?.amount ?? 0n);
    let balance = opening;
    const lines = rows
      .filter((row) => row.asset === asset)
      .map((row): StatementLine => {
        balance += row.change;
        return toLine(row, balance);
      });
    const sum = (of: (line: StatementLine) => bigint) => lines.reduce((total, line) => total + of(line), 0n);
    const ofKind = (kind: StatementLine["kind"]) => (line: StatementLine) => (line.kind === kind ? line.change : 0n);
    return {
      merchantId,
      asset,
      from,
      until,
      opening,
      closing: balance,
      payments: sum(({ gross }) => gross ?? 0n),
      fees: sum(({ fee }) => fee ?? 0n),
      settled: -sum(ofKind("settlement")),
      refunded: -sum(ofKind("refund")),
      lines,
    };
  });
}

function toLine(row: StatementRow, balance: bigint): StatementLine {
  const { at, kind, payment_id: paymentId, reference_id: referenceId, gross, fee, change, to, tx_hash: txHash } = row;
  return { at, kind, paymentId, referenceId, gross, fee, change, balance, to, txHash };
}

const columns = [
  "at",
  "kind",
  "paymentId",
  "referenceId",
  "gross",
  "fee",
  "change",
  "balance",
  "to",
  "txHash",
] as const;

/**
 * Returns statements as lines of CSV (RFC 4180): one table for all assets, with opening and closing balances as rows.
 */
export function toCsv(statements: readonly Statement[]): string[] {
  const lines = [["asset", ...columns].join(",")];
  for (const { asset, from, until, opening, closing, lines: changes } of statements) {
    const edge = (at: string, kind: string, balance: bigint) =>
      [asset, at, kind, "", "", "", "", "", balance, "", ""].map(toCell).join(",");
    lines.push(edge(from, "opening", opening));
    for (const line of changes) lines.push([asset, ...columns.map((name) => line[name])].map(toCell).join(","));
    lines.push(edge(until, "closing", closing));
  }
  return lines;
}

function toCell(value: string | bigint | Date | null): string {
  if (value === null) return "";
  if (typeof value !== "string") return value instanceof Date ? value.toISOString() : value.toString();
  // Prevent formula injection: a spreadsheet evaluates a text that begins like this.
  const text = /^[=+\-@\t]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
