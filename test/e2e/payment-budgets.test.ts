import { readFileSync } from "node:fs";
import { GCProfiler } from "node:v8";
import { Redis } from "ioredis";
import pg from "pg";
import { expect, test, vi } from "vitest";
import { migrateDatabase } from "../../db/migrate.ts";
import { startPostgres } from "../../local/postgres.ts";
import { acceptConfirm, findVerificationResult } from "../../payments/lifecycle/confirm-payment.ts";
import { findStatus } from "../../payments/lifecycle/read-payment.ts";
import { dispatchSettlements } from "../../payments/payouts/dispatch-payouts.ts";
import { queueNames } from "../../queues/catalog.ts";
import { createPaymentChangePublisher } from "../../queues/payment-changes.ts";
import { accumulatePayouts } from "../support/accumulate-payouts.ts";
import { addCleanup } from "../support/cleanups.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { fixtureRequester, makeMerchantFixture, signOption, unwrap } from "../support/merchant-fixture.ts";
import { startPrivateRedis } from "../support/private-services.ts";
import { mapConcurrently } from "../support/sign-payments.ts";
import { openQueues } from "../support/test-queues.ts";

/** Payments in flight. Each step takes all of them before the next step begins, so the batches are the same in every run. */
const COUNT = 256;
const ACCUMULATE_MS = 2_000;

/** The difference from a budget that the test accepts. When V8 compiles which function differs from run to run. */
const toleranceOf = (name: string) => (name === "Allocated bytes" ? 0.2 : 0.1);

test("a payment at 256 in flight costs what docs/performance.md says", async () => {
  const postgres = await startPostgres({ own: true, fast: true });
  addCleanup(() => postgres.close());
  // Autovacuum comes every ten seconds on such a server, and writes WAL of its own.
  await execute(postgres.url, "alter system set autovacuum = off", "select pg_reload_conf()");
  await migrateDatabase(postgres.url);
  const chain = await startChain({ lanes: 1 });
  const fixture = await makeMerchantFixture(chain, { databaseUrl: postgres.url });
  await accumulatePayouts(fixture, { ms: ACCUMULATE_MS });
  const redis = await startPrivateRedis();
  const queues = await openQueues({ url: redis.url });
  await queues.ready();
  const { deps, mode } = fixture;
  deps.enqueue = queues.enqueue;
  deps.publishPaymentChanges = createPaymentChangePublisher(queues.redis, queues.prefix);
  const buyers = await fundBuyers(chain, 64);

  /** Makes payments that are ready to be confirmed. */
  const prepare = (count: number) => {
    const indexes = Array.from({ length: count }, (_, index) => index);
    // If all began at once, the last ones would wait for a connection longer than the pool lets them on a slow machine.
    return mapConcurrently(indexes, 32, async (index) => {
      const buyer = buyers[index % buyers.length];
      if (!buyer) throw new Error("there is no buyer");
      const paymentId = await fixture.create(1n);
      const [option] = await fixture.offer(paymentId, buyer);
      if (!option) throw new Error("there is no option");
      return { paymentId, mode, optionId: option.id, results: await signOption(option, buyer) };
    });
  };

  /** Takes payments from their confirms to their payouts, one step for all of them after another. */
  const pay = async (prepared: Awaited<ReturnType<typeof prepare>>) => {
    const confirms = prepared.map((one) => acceptConfirm(deps, { ...one, requester: fixtureRequester }));
    const attemptIds = (await Promise.all(confirms)).flatMap((accepted) => unwrap(accepted).attemptId ?? []);
    await fixture.verify(...attemptIds);
    await Promise.all(attemptIds.map((id) => findVerificationResult(deps, id)));
    await fixture.relay();
    await fixture.watch();
    const ends = await Promise.all(prepared.map(({ paymentId }) => findStatus(deps, { paymentId, mode })));
    expect(ends.filter((end) => unwrap(end).state !== "succeeded")).toEqual([]);
    fixture.clock.advance(ACCUMULATE_MS + 1_000);
    const due = await deps.db.selectFrom("settlement").select("id").where("state", "=", "accumulating").execute();
    await dispatchSettlements(
      deps,
      due.map(({ id }) => id),
    );
    await fixture.relay();
    await fixture.watch();
  };
  const countWaiting = async () => {
    const counts = queueNames.map(async (name) => [name, await queues.queue(name).getWaitingCount()] as const);
    return (await Promise.all(counts)).filter(([, count]) => count > 0);
  };
  /** Runs waiting jobs, with handlers that do nothing: the steps have done their work already. */
  const serveJobs = async (waiting: Awaited<ReturnType<typeof countWaiting>>) => {
    const served = waiting.map(async ([name, count]) => {
      let handled = 0;
      const all = Promise.withResolvers<void>();
      const worker = queues.serve(name, async () => {
        handled += 1;
        if (handled === count) all.resolve();
        return { done: true };
      });
      await all.promise;
      await worker.close();
    });
    await Promise.all(served);
  };

  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  addCleanup(() => admin.end());
  const counter = new Redis(redis.url);
  addCleanup(async () => counter.disconnect());
  const readWal = async () =>
    Number((await admin.query("select pg_current_wal_insert_lsn() - '0/0' as bytes")).rows[0].bytes);
  const readCommands = async () => Number(/total_commands_processed:(\d+)/.exec(await counter.info("stats"))?.[1] ?? 0);
  const countCalls = async () => (await deps.metrics.rpcCalls.get()).values.reduce((sum, { value }) => sum + value, 0);

  // The first payments compile code, open connections and fill caches.
  await pay(await prepare(COUNT));
  await serveJobs(await countWaiting());
  const prepared = await prepare(COUNT);
  const [wal, calls, lines] = [
    await readWal(),
    await countCalls(),
    [fixture.lines.length, queues.lines.length] as const,
  ];
  const commandsBefore = await readCommands();
  const sql = countStatements();
  const memory = measureAllocations();
  await pay(prepared);
  const allocated = memory();
  const { statements, commits } = sql();
  const walAfter = await readWal();
  const callsAfter = await countCalls();
  const enqueueing = (await readCommands()) - commandsBefore;
  const waiting = await countWaiting();
  const commandsServing = await readCommands();
  await serveJobs(waiting);
  const commands = enqueueing + (await readCommands()) - commandsServing;
  const logged = [...fixture.lines.slice(lines[0]), ...queues.lines.slice(lines[1])].filter(isLogged);

  const measured = {
    "SQL statements": statements,
    Commits: commits,
    "WAL bytes": walAfter - wal,
    "Redis commands": commands,
    "RPC calls": callsAfter - calls,
    "Log lines": logged.length,
    "Log bytes": logged.join("").length,
    "Allocated bytes": allocated,
  };
  const each = Object.fromEntries(Object.entries(measured).map(([name, count]) => [name, count / COUNT]));
  const budgets = readBudgets();
  expect(Object.keys(budgets)).toEqual(Object.keys(each));
  const differences = Object.entries(each).filter(([name, cost]) => {
    const budget = budgets[name] ?? 0;
    return Math.abs(cost - budget) > toleranceOf(name) * budget;
  });
  expect(Object.fromEntries(differences), `measured: ${JSON.stringify(each)}`).toEqual({});
});

/** Reads the table of budgets: the first number of each row. */
function readBudgets(): Record<string, number> {
  const text = readFileSync(new URL("../../docs/performance.md", import.meta.url), "utf8");
  const table = text.slice(text.indexOf("| Per payment |")).split("\n\n")[0] ?? "";
  const rows = table.split("\n").slice(2);
  return Object.fromEntries(
    rows.map((row) => {
      const [, name = "", budget = ""] = row.split("|").map((cell) => cell.trim());
      return [name, Number(budget.replaceAll(",", ""))];
    }),
  );
}

/** Counts the statements and commits of all connections of this process until the returned function is called. */
function countStatements(): () => { statements: number; commits: number } {
  const spy = vi.spyOn(pg.Client.prototype, "query");
  return () => {
    const texts = spy.mock.calls.map(([query]) => String((query as { text?: string }).text ?? query));
    const contexts = spy.mock.contexts;
    spy.mockRestore();
    const open = new Set<unknown>();
    let commits = 0;
    for (const [index, text] of texts.entries()) {
      const client = contexts[index];
      if (text === "begin") open.add(client);
      else if (text === "commit") commits += 1;
      else if (!open.has(client)) commits += 1;
      if (text === "commit" || text === "rollback") open.delete(client);
    }
    return { statements: texts.length, commits };
  };
}

/** Measures the bytes that this process allocates on its heap until the returned function is called. */
function measureAllocations(): () => number {
  const profiler = new GCProfiler();
  profiler.start();
  let used = process.memoryUsage().heapUsed;
  return () => {
    const end = process.memoryUsage().heapUsed;
    let allocated = 0;
    for (const { beforeGC, afterGC } of profiler.stop().statistics) {
      allocated += beforeGC.heapStatistics.usedHeapSize - used;
      used = afterGC.heapStatistics.usedHeapSize;
    }
    return allocated + end - used;
  };
}

/** Returns true for a line that a process writes with the default LOG_LEVEL. */
function isLogged(line: string): boolean {
  return JSON.parse(line).level !== "debug";
}
