import { sql } from "kysely";
import { listBalances } from "../../db/queries/ledger-balances.ts";
import type { Db } from "../../db/tables.ts";
import { accounts } from "./ledger-groups.ts";

/** One change of a merchant's balance. Amounts in minor units of the asset. */
type StatementLine = {
  at: Date;
  kind: "payment" | "settlement" | "refund" | "assigned";
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

type Row = Omit<StatementLine, "balance"> & { asset: string };

/** Returns a merchant's statements of a period, one for each asset with a balance or a change. */
export async function readStatements(
  { db }: { db: Db },
  args: { merchantId: string; from: string; until: string },
): Promise<Statement[]> {
  const { merchantId, from, until } = args;
  const account = accounts.payable(merchantId);
  const dayBefore = new Date(Date.parse(from) - 86_400_000).toISOString().slice(0, 10);
  const before = await listBalances(db, { account, day: dayBefore });
  const rows = await listRows(db, { account, from, until });
  const assets = new Set([...before, ...rows].map(({ asset }) => asset));
  return [...assets].sort().map((asset) => {
    // A balance owed to the merchant is a credit, so its sign is inverted.
    const opening = -(before.find((one) => one.asset === asset)?.amount ?? 0n);
    let balance = opening;
    const lines = rows
      .filter((row) => row.asset === asset)
      .map(({ asset: _, ...row }): StatementLine => {
        balance += row.change;
        return { ...row, balance };
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

async function listRows(db: Db, args: { account: string; from: string; until: string }): Promise<Row[]> {
  const { account, from, until } = args;
  const { rows } = await sql<Row>`
    select g.at, e.asset, -e.amount as change,
      case when g.kind = 'payment' then 'payment' when s.id is not null then 'settlement'
        when r.id is not null then 'refund' else 'assigned' end as kind,
      coalesce(p.id, r.payment_id) as "paymentId", coalesce(p.reference_id, rp.reference_id) as "referenceId",
      case when g.kind = 'payment' then case when p.owed_asset is null then t.amount else -e.amount end end as gross,
      case when g.kind = 'payment' then case when p.owed_asset is null then t.amount + e.amount else 0 end end as fee,
      coalesce(s.destination, r.receiver) as "to",
      case when s.id is not null or r.id is not null then coalesce(s.tx_hash, paid.tx_hash) else g.tx_hash end as "txHash"
    from ledger_entry e
    join ledger_group g on g.id = e.group_id
    left join transfer t on g.kind = 'payment' and t.id = g.subject
    left join payment p on p.id = t.payment_id
    left join settlement s on g.kind in ('settlement_begun', 'settlement_changed') and s.id = g.subject
    left join refund r on g.kind in ('refund_begun', 'refund_reduced') and r.id = g.subject
    left join payment rp on rp.id = r.payment_id
    left join transfer out on (out.purpose = 'settlement' and out.settlement_id = s.id)
      or (out.purpose = 'refund' and out.refund_id = r.id)
    left join ledger_group paid on paid.subject = out.id and paid.kind in ('settlement_paid', 'refund_paid')
    where e.account = ${account} and ledger_day_of(g.at) between ${from}::date and ${until}::date
    order by e.id`.execute(db);
  return rows;
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
