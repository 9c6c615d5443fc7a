import pg from "pg";
import { openDb } from "../../../db/open.ts";
import { sumEndedPayments } from "../../../payments/maintenance/sum-payments.ts";
import { createLog } from "../../../runtime/log.ts";
import { runPool } from "../bench-stats.ts";
import { insertEventStatements } from "./insert-events.ts";
import { insertMoneyStatements } from "./insert-money.ts";
import { insertPaymentStatements } from "./insert-payments.ts";
import { type HistoryAsset, type IdForm, planStatements } from "./plan-history.ts";

export type HistoryOptions = {
  /** The number of payments. */
  payments: number;
  /** The payments are spread evenly over the days before now (default 365). */
  days?: number;
  accounts?: number;
  /** Merchants of all accounts. The first account has four fifths of them, and the first merchant has most payments. */
  merchants?: number;
  assets?: readonly [HistoryAsset, ...HistoryAsset[]];
  /** Default: by time. */
  ids?: IdForm;
  say?: (line: string) => void;
};

/** Three EVM chains and Solana, with shares of the payments. */
const someAssets: [HistoryAsset, ...HistoryAsset[]] = [
  { chain: "eip155:8453", token: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", currency: "USD", share: 0.6 },
  { chain: "eip155:8453", token: "0x60a3e35cc302bfa44cb288bc5a4f316fdb1adb42", currency: "EUR", share: 0.1 },
  { chain: "eip155:42161", token: "0xaf88d065e77c8cc2239327c5edb3a432268e5831", currency: "USD", share: 0.15 },
  { chain: "eip155:137", token: "0x3c499c542cef5e3811e1192ce70d8cc03d5c3359", currency: "USD", share: 0.05 },
  {
    chain: "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
    token: "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v",
    currency: "USD",
    share: 0.1,
  },
];

/**
 * Fills a migrated, empty database with the rows that payments of a year leave: accounts, merchants, payments, options,
 * attempts, transfers, transactions, observations, the ledger, settlements, refunds, events and webhooks. The rows are
 * consistent: the checks of `npm run reconcile` find nothing. The same options make the same rows, relative to the time
 * of the call.
 *
 * The fill bypasses the triggers and writes the indexes at the end, which takes a superuser. A fill that was interrupted
 * leaves a database without usable indexes: drop it.
 */
export async function generateHistory(url: string, options: HistoryOptions): Promise<void> {
  const {
    payments,
    days = 365,
    accounts = 5,
    merchants = 50,
    assets = someAssets,
    ids = "by time",
    say = () => undefined,
  } = options;
  const settings = {
    session_replication_role: "replica",
    synchronous_commit: "off",
    work_mem: "128MB",
    maintenance_work_mem: "512MB",
    statement_timeout: "0",
    timezone: "UTC",
  };
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  const pool = new pg.Pool({ connectionString: url, max: 2, options: flags.join(" ") });
  const db = openDb(url, { max: 1, statementTimeoutMs: 0 });
  const log = createLog({ level: "error", role: "bench" });
  const run = async (title: string, text: string) => {
    const begun = performance.now();
    await pool.query(text);
    say(`${title} (${((performance.now() - begun) / 1000).toFixed(1)} s)`);
  };
  try {
    for (const [title, text] of planStatements({ payments, days, accounts, merchants, assets, ids }))
      await run(title, text);
    const inserts = [...insertEventStatements, ...insertPaymentStatements, ...insertMoneyStatements];
    const tables = inserts.map(([table]) => table);
    await pool.query(
      "update pg_index set indisready = false, indisvalid = false where indrelid = any($1::text[]::regclass[])",
      [tables],
    );
    await runPool(inserts, 2, ([table, text]) => run(table, text));
    await runPool(tables, 2, (table) => run(`indexes of ${table}`, `reindex table ${table}`));
    await runPool(tables, 2, (table) => run(`statistics of ${table}`, `vacuum (analyze) ${table}`));
    await pool.query("drop schema history cascade");
    while ((await sumEndedPayments({ db, log, now: () => new Date() }, { atLeast: 1 })) === "more");
    await run(
      "statistics of the sums",
      "vacuum (analyze) ended_payment, payment_sum, summed_payment, summed_owner, summed_kind, customer, customer_set",
    );
  } finally {
    await db.destroy();
    await pool.end();
  }
}
