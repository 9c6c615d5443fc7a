import { sql } from "kysely";
import { expect, test, vi } from "vitest";
import { openDb } from "../../../db/open.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { startChain } from "../../support/evm-chain.ts";
import { startFleet } from "../../support/fleet.ts";
import { scrape, sumOf } from "../../support/scrape.ts";
import { waitFor } from "../../support/wait-for.ts";

const COUNT = 10_000;
const SWEEPS = 8;

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1 });
const db = openDb(fleet.databaseUrl, { max: 1, statementTimeoutMs: 120_000 });
addCleanup(() => db.destroy());

async function readTotals() {
  const samples = (await Promise.all([...fleet.apis, ...fleet.workers].map((one) => scrape(one.metricsUrl)))).flat();
  return {
    statements: sumOf(samples, "pay_sql_statements_total") ?? 0,
    calls: sumOf(samples, "pay_rpc_calls_total") ?? 0,
    sweeps: sumOf(samples, "pay_jobs_total", { queue: "sweep" }) ?? 0,
    begun: performance.now(),
  };
}

/** Returns the statements and RPC calls per second of all processes while nothing happens. */
async function measureIdle() {
  const before = await readTotals();
  const isOver = async () => (await readTotals()).sweeps >= before.sweeps + SWEEPS;
  await waitFor(isOver, { within: 60_000, every: 1_000, what: `${SWEEPS} sweeps` });
  const after = await readTotals();
  const seconds = (after.begun - before.begun) / 1_000;
  return {
    statements: (after.statements - before.statements) / seconds,
    calls: (after.calls - before.calls) / seconds,
  };
}

/** Inserts payments that wait for their buyers, each with an option, and payments that wait for their money. */
async function insertWaiting(): Promise<void> {
  const columns = sql`id, account_id, merchant_id, mode, unit, value, state, created_at, updated_at, expires_at, due_at`;
  const insert = (prefix: string) => sql`
    insert into payment (${columns})
    select ${prefix} || lpad(to_hex(n), 30, '0'), account_id, id, 'live', 'iso4217/USD', 100, 'requires_action', now(),
      now(), now() + interval '1 day', now() + interval '1 day'
    from merchant, generate_series(1, ${COUNT}::int) n where id = ${fleet.shop.caller.merchantId}`;
  await insert("pay_aa").execute(db);
  await insert("pay_bb").execute(db);
  await sql`
    insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount,
      authorization_nonce, valid_before, created_at)
    select 'opt_' || substr(id, 5), id, ${chain.id} || ':0x1', ${chain.id}, ${`${chain.id}/erc20:${chain.contracts.token}`},
      ${chain.contracts.token}, '0x' || lpad(substr(id, 7), 40, '0'), '0x9', 100, '0x' || lpad(substr(id, 5), 64, '0'), 4000000000, now()
    from payment where id like 'pay_aa%'`.execute(db);
  await sql`
    insert into transfer (id, purpose, payment_id, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, state, created_at)
    select 'trf_' || substr(id, 5), 'payment', id, ${chain.id}, ${`${chain.id}/erc20:${chain.contracts.token}`}, ${chain.contracts.token},
      '0x' || lpad(substr(id, 7), 40, '0'), '0x9', 100, '0x' || lpad(substr(id, 5), 64, '0'), 4000000000, 'awaited', now()
    from payment where id like 'pay_bb%'`.execute(db);
  await sql`update payment set state = 'processing', due_at = null where id like 'pay_bb%'`.execute(db);
  await sql`analyze`.execute(db);
}

test("ten thousand payments that wait for their buyers or their money add no statements and no RPC calls", {
  timeout: 600_000,
}, async () => {
  // What a process does once when it starts is over.
  await measureIdle();
  const without = await measureIdle();
  await insertWaiting();
  const expectAsIdle = async () => {
    const withThem = await measureIdle();
    // A minute's task that happens to fall into one of the measurements is a few statements, and a fleet that gets less of a busy
    // machine in one of them polls less often.
    expect(withThem.statements).toBeLessThan(2 * without.statements + 5);
    expect(withThem.calls).toBeLessThan(2 * without.calls + 2);
  };
  // What waiting payments add is in every measurement, and what a slow machine adds is not.
  await vi.waitFor(expectAsIdle, { timeout: 180_000, interval: 1_000 });
});
