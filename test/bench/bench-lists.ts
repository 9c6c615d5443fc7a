import { type RawBuilder, sql } from "kysely";
import { migrateDatabase } from "../../db/migrate.ts";
import { openDb } from "../../db/open.ts";
import type { Pool } from "../../db/tables.ts";
import { startPostgres } from "../../local/postgres.ts";
import type { Say } from "../../local/service.ts";
import { percentile } from "./bench-stats.ts";
import { generateHistory } from "./history/generate-history.ts";
import { listCases, type Owner } from "./list-cases.ts";

/** Requests of each list, after those that fill the caches. */
const RUNS = 20;
const WARMUPS = 2;
/** A list that takes longer than this for all of its requests is measured with fewer. */
const MOST_MS = 5_000;
/** What a page and its totals may take, milliseconds. */
const BUDGET_MS = 50;

type Measured = { name: string; wall: number[]; inPostgres: number };

/**
 * Prints how long the pages of merchants' and operators' lists take, with their totals, in an account of `rows` payments of a
 * year in 50 merchants. Fills an empty database; a filled one that DATABASE_URL names is used as it is.
 */
export async function benchLists({ rows, say }: { rows: number; say: Say }): Promise<void> {
  const postgres = await startPostgres({ say });
  try {
    await migrateDatabase(postgres.url);
    const db = openDb(postgres.url, { max: 1, statementTimeoutMs: 0 });
    try {
      if ((await countPayments(db)) === 0) await generateHistory(postgres.url, { payments: rows, accounts: 1, say });
      const measured: Measured[] = [];
      for (const [name, request] of listCases(db, await findOwner(db))) {
        const one = { name, ...(await measure(db, request)) };
        say(`${name}: ${percentile(one.wall, 0.5).toFixed(1)} ms`);
        measured.push(one);
      }
      printMeasured(measured, await countPayments(db));
    } finally {
      await db.destroy();
    }
  } finally {
    await postgres.close();
  }
}

async function measure(db: Pool, request: () => Promise<unknown>): Promise<Omit<Measured, "name">> {
  for (let n = 0; n < WARMUPS; n += 1) await request();
  const before = await readActiveMs(db);
  const wall: number[] = [];
  for (let all = 0; wall.length < RUNS && all < MOST_MS; all += wall.at(-1) ?? 0) {
    const begun = performance.now();
    await request();
    wall.push(performance.now() - begun);
  }
  return { wall, inPostgres: ((await readActiveMs(db)) - before) / wall.length };
}

function printMeasured(measured: readonly Measured[], payments: number): void {
  const row = (...[name, ...figures]: [string, string, string, string, string]) =>
    name.padEnd(52) + figures.map((figure) => figure.padStart(10)).join("");
  const lines = measured.map(({ name, wall, inPostgres }) => {
    const [p50, p95] = [percentile(wall, 0.5), percentile(wall, 0.95)];
    const figures = [p50, p95, inPostgres].map((ms) => ms.toFixed(1)) as [string, string, string];
    return row(name, ...figures, p50 > BUDGET_MS ? `> ${BUDGET_MS}` : "");
  });
  const head = row(`${payments.toLocaleString("en")} payments, ms`, "p50", "p95", "Postgres", "");
  console.log(`\n${[head, ...lines].join("\n")}`);
}

/** Returns how long Postgres has executed statements of this database, milliseconds. The session that asks has run them. */
async function readActiveMs(db: Pool): Promise<number> {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const ms = sql<{ value: number }>`
    select active_time as value from pg_stat_database where datname = current_database()`;
  return readValue(db, ms);
}

const countPayments = (db: Pool) => readValue(db, sql`select count(*)::integer as value from payment`);

async function readValue(db: Pool, query: RawBuilder<unknown>): Promise<number> {
  const { rows } = await query.execute(db);
  return (rows[0] as { value: number } | undefined)?.value ?? 0;
}

/** Returns the account with its merchants, those with most payments first. */
async function findOwner(db: Pool): Promise<Owner> {
  const { rows } = await sql<{ account_id: string; merchant_id: string }>`
    select o.account_id, o.merchant_id from summed_owner o join payment_sum s on s.owner = o.id and s.span = 'year'
    where o.merchant_id <> '' group by 1, 2 order by sum(s.count) desc`.execute(db);
  const endpoint = await db.selectFrom("webhook_endpoint").select("id").executeTakeFirst();
  if (!rows[0] || !endpoint) throw new Error("the database has no payments");
  return { accountId: rows[0].account_id, merchantIds: rows.map((row) => row.merchant_id), endpointId: endpoint.id };
}
