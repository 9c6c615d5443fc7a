import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { migrateDatabase } from "../../db/migrate.ts";
import { openDb } from "../../db/open.ts";
import { ensureLane } from "../../db/queries/lanes.ts";
import type { Pool } from "../../db/tables.ts";
import { startPostgres } from "../../local/postgres.ts";
import type { Say } from "../../local/service.ts";
import { type IdPrefix, newId } from "../../payments/ids.ts";
import { printTable } from "./bench-stats.ts";
import { generateHistory } from "./history/generate-history.ts";
import type { IdForm } from "./history/plan-history.ts";
import { type Shop, writePayments } from "./history/write-payments.ts";

/** Payments of one batch: each statement is for all of them. */
const BATCH = 32;
/** Payments before the first measurement. */
const WARMUP = 10 * BATCH;
const CHAIN = "eip155:8453";
const TOKEN = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913";
/** Above the blocks of every history. */
const FIRST_BLOCK = 2_000_000_000;

const makeIds: Record<IdForm, (prefix: IdPrefix, at: Date) => string> = {
  "by time": newId,
  random: (prefix) => `${prefix}_${randomBytes(16).toString("hex")}`,
};

/**
 * Prints the WAL of a payment, from its creation to its webhooks, on an empty database and on one with a history, for ids
 * that begin with their time and for random ones. A filled database that DATABASE_URL names is measured as it is, beside an
 * empty one. Each measurement begins after a checkpoint, and is printed for the first payments after it and for more and more
 * of them: those between two checkpoints share the images of the pages that they change.
 */
export async function benchWal({ history, payments, say }: { history: number; payments: number; say: Say }) {
  const lines: [string, string][] = [];
  const given = process.env["DATABASE_URL"];
  const databases = [
    { ids: "by time", size: 0, own: true },
    ...(given
      ? [{ ids: "by time", size: 0, own: false } as const]
      : (["random", "by time"] as const).map((ids) => ({ ids, size: history, own: true }))),
  ] as const;
  for (const { ids, size, own } of databases) {
    const postgres = await startPostgres({ own, say });
    try {
      await migrateDatabase(postgres.url);
      if (size > 0) await generateHistory(postgres.url, { payments: size, ids, say });
      const before = own ? `${size.toLocaleString("en")} payments before` : "DATABASE_URL";
      for (const line of await measure(postgres.url, { ids, payments, say })) lines.push([`${ids}, ${before}`, line]);
    } finally {
      await postgres.close();
    }
  }
  printTable(lines);
}

/** Returns the cost per payment, without and with compressed images. */
async function measure(url: string, { ids, payments, say }: { ids: IdForm; payments: number; say: Say }) {
  const db = openDb(url, { max: 1, statementTimeoutMs: 0 });
  const run = (text: string) => sql.raw(text).execute(db);
  try {
    if (ids === "random")
      await run("alter table webhook_event alter column id set default 'evt_' || md5(random()::text)");
    const shop = await insertShop(db);
    let nonce = Math.floor(Date.now() / 1000);
    const pay = async (count: number) => {
      const makeId = makeIds[ids];
      for (let paid = 0; paid < count; paid += BATCH, nonce += 1)
        await writePayments(db, { shop, makeId, count: BATCH, nonce, block: FIRST_BLOCK + nonce });
    };
    await pay(WARMUP);
    const lines: string[] = [];
    for (const compression of ["off", "on"]) {
      await run(`alter system set wal_compression = ${compression}`);
      await run("select pg_reload_conf()");
      await run("checkpoint");
      const before = await readCounters(db);
      let paid = 0;
      let seconds = 0;
      for (const upTo of slicesOf(payments)) {
        const begun = performance.now();
        await pay(upTo - paid);
        seconds += (performance.now() - begun) / 1000;
        paid = upTo;
        const line = `${describe(before, await readCounters(db), paid)}, ${(paid / seconds).toFixed(0)} a second`;
        lines.push(compression === "on" ? `${line}; with wal_compression` : line);
        say(line);
      }
    }
    return lines;
  } finally {
    await db.destroy();
  }
}

/** Returns the numbers of payments after a checkpoint for which the cost is printed: each four times the one before. */
function slicesOf(payments: number): number[] {
  const fewer = payments / 4;
  return fewer < 16 * BATCH ? [payments] : [...slicesOf(Math.round(fewer / BATCH) * BATCH), payments];
}

function describe(before: Counters, after: Counters, paid: number): string {
  const [bytes, images, updates, hot] = (["bytes", "images", "updates", "hot"] as const).map((name) =>
    ((after[name] - before[name]) / paid).toFixed(name === "bytes" ? 0 : 2),
  );
  return `${paid} payments: ${bytes} bytes of WAL, ${images} images of pages, ${updates} updates, ${hot} of them HOT`;
}

type Counters = { bytes: number; images: number; updates: number; hot: number };

/** Reads what Postgres has written and updated since its start. The session that asks is the one that has written. */
async function readCounters(db: Pool): Promise<Counters> {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<Counters>`
    select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as bytes,
      (select wal_fpi::float8 from pg_stat_wal) as images,
      sum(n_tup_upd)::float8 as updates, sum(n_tup_hot_upd)::float8 as hot from pg_stat_user_tables`.execute(db);
  if (!rows[0]) throw new Error("Postgres returned no counters");
  return rows[0];
}

async function insertShop(db: Pool): Promise<Shop> {
  const created_at = new Date();
  const [accountId, merchantId, endpointId] = [
    newId("acct", created_at),
    newId("mrch", created_at),
    newId("whe", created_at),
  ];
  await db.insertInto("account").values({ id: accountId, name: "Shop", created_at }).execute();
  const named = {
    name: "Shop",
    email: "shop@example.test",
    icon_url: null,
    logo_id: null,
    created_at,
    deleted_at: null,
  };
  await db
    .insertInto("merchant")
    .values({ id: merchantId, account_id: accountId, mode: "live", ...named })
    .execute();
  await sql`
    insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
    values (${endpointId}, ${accountId}, 'live', 'https://shop.example.test/hooks', true, 'none', '', ${created_at})`.execute(
    db,
  );
  const address = `0x${"1a".repeat(20)}`;
  const laneId = `${CHAIN}:${address}`;
  await ensureLane(db, { id: laneId, chain: CHAIN, address, nextNonce: 0 });
  return { accountId, merchantId, endpointId, laneId, chain: CHAIN, asset: `${CHAIN}/erc20:${TOKEN}`, token: TOKEN };
}
