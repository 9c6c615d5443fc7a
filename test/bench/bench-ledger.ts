import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { migrateDatabase } from "../../db/migrate.ts";
import { openDb } from "../../db/open.ts";
import { type BalanceFilter, listBalances, selectBalances } from "../../db/queries/ledger-balances.ts";
import { insertGroups } from "../../db/queries/ledger-groups.ts";
import { readLedgerSides } from "../../db/queries/reconciliations.ts";
import type { Pool } from "../../db/tables.ts";
import { startPostgres } from "../../local/postgres.ts";
import type { Say } from "../../local/service.ts";
import { percentile, printTable } from "./bench-stats.ts";

const CHAIN = "eip155:8453";
const ASSET = `${CHAIN}/erc20:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913`;
/** The number of groups that one statement inserts. */
const CHUNK = 250_000;
const MERCHANTS = 2_000;
/** The bookings are spread evenly over the last year, with one block per group. */
const DAYS = 365;
/** The number of runs of each query. */
const TIMES = 20;

/**
 * Fills a ledger with the given number of entries, and prints the cost of balances, with their plans, and of a booking.
 * The fill bypasses the triggers, as a restored backup does; the daily sums are then computed as the migration does.
 */
export async function benchLedger({ entries, say }: { entries: number; say: Say }): Promise<void> {
  const postgres = await startPostgres({ own: true, fast: true, say });
  try {
    await migrateDatabase(postgres.url);
    const db = openDb(postgres.url, { max: 1, statementTimeoutMs: 0 });
    try {
      const groups = Math.ceil(entries / 2);
      await fill(db, { groups, say });
      await measure(db, { groups, say });
    } finally {
      await db.destroy();
    }
  } finally {
    await postgres.close();
  }
}

async function fill(db: Pool, { groups, say }: { groups: number; say: Say }): Promise<void> {
  await sql`set session_replication_role = replica`.execute(db);
  for (let from = 1; from <= groups; from += CHUNK) {
    const to = Math.min(groups, from + CHUNK - 1);
    say(`${(2 * to).toLocaleString("en")} of ${(2 * groups).toLocaleString("en")} entries`);
    await sql`
      with made as (
        insert into ledger_group (kind, subject, chain, block_number, block_id, tx_hash, log_index, at)
        select 'payment', 'trf_' || md5(n::text), ${CHAIN}, n, '0x' || md5(n::text), '0x' || md5('t' || n), 1,
          now() - (${groups} - n) * (interval '1 day' * ${DAYS} / ${groups})
        from generate_series(${from}::bigint, ${to}::bigint) n returning id
      )
      insert into ledger_entry (group_id, account, asset, amount)
      select m.id, side.account, ${ASSET}, side.sign * (1000 + m.id % 1000)
      from made m cross join lateral
        (values ('treasury', 1), ('payable:mrch_' || md5((m.id % ${MERCHANTS})::text), -1)) as side (account, sign)`.execute(
      db,
    );
  }
  say("computing the daily sums");
  await sql`
    insert into ledger_day (account, asset, day, shard, amount)
    select e.account, e.asset, ledger_day_of(g.at), case when e.account = 'treasury' then e.id % 16 else 0 end, sum(e.amount)
    from ledger_entry e join ledger_group g on g.id = e.group_id
    group by 1, 2, 3, 4`.execute(db);
  await sql`set session_replication_role = origin`.execute(db);
  for (const table of ["ledger_group", "ledger_entry", "ledger_day"])
    await sql`vacuum analyze ${sql.table(table)}`.execute(db);
}

async function measure(db: Pool, { groups, say }: { groups: number; say: Say }): Promise<void> {
  const halfYear = new Date(Date.now() - (DAYS / 2) * 86_400_000).toISOString().slice(0, 10);
  const merchant = `payable:mrch_${"c4ca4238a0b923820dcc509a6f75849b"}`;
  const questions: [string, BalanceFilter][] = [
    ["the treasury, now", { account: "treasury", asset: ASSET }],
    ["the treasury, half a year ago", { account: "treasury", asset: ASSET, day: halfYear }],
    ["one merchant, half a year ago", { account: merchant, asset: ASSET, day: halfYear }],
    ["every account, half a year ago", { day: halfYear }],
  ];
  say("running the queries");
  const lines: [string, string][] = [];
  for (const [what, filter] of questions) lines.push([what, await time(() => listBalances(db, filter))]);
  const sides = { chain: CHAIN, block: groups - 100, accounts: ["treasury"], treasury: "0x" };
  lines.push(["ledger at a block, 100 blocks back", await time(() => readLedgerSides(db, sides))]);
  lines.push(["one booking of 100 payments", await time(() => book(db))]);
  const { rows: sizes } = await sql<{ entries: number; days: number }>`
    select (select count(*) from ledger_entry) as entries, (select count(*) from ledger_day) as days`.execute(db);
  printTable([
    ["entries", (sizes[0]?.entries ?? 0).toLocaleString("en")],
    ["rows of daily sums", (sizes[0]?.days ?? 0).toLocaleString("en")],
    ...lines,
  ]);
  for (const [what, filter] of questions) {
    const { rows } = await sql<Record<string, string>>`explain (analyze, buffers) ${selectBalances(filter)}`.execute(
      db,
    );
    console.log(`\n${what}\n${rows.map((row) => `  ${Object.values(row)[0]}`).join("\n")}`);
  }
}

/** Returns the median and the worst of several runs, milliseconds. */
async function time(work: () => Promise<unknown>): Promise<string> {
  const took: number[] = [];
  for (let run = 0; run < TIMES; run += 1) {
    const begun = performance.now();
    await work();
    took.push(performance.now() - begun);
  }
  return `${percentile(took, 0.5).toFixed(1)} ms, at worst ${Math.max(...took).toFixed(1)} ms`;
}

/** Books a batch of confirmed payments of different merchants, as the watcher does. */
async function book(db: Pool): Promise<void> {
  const groups = Array.from({ length: 100 }, (_, index) => ({
    kind: "payment",
    subject: `bench ${randomUUID()} ${index}`,
    entries: [
      { account: "treasury", asset: ASSET, amount: 5n },
      { account: `payable:mrch_${index}`, asset: ASSET, amount: -5n },
    ],
  }));
  await db.transaction().execute((trx) => insertGroups(trx, groups, new Date()));
}
