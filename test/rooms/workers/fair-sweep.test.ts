import { expect, test } from "vitest";
import { isTransientChainError } from "../../../chains/faults.ts";
import { createHandlers } from "../../../workers/handlers.ts";
import { createJudge } from "../../../workers/trouble.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { execute } from "../../support/sql.ts";
import { makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();
const signal = new AbortController().signal;

/** Settlements of a merchant that have been due for ten minutes; its balance covers them. */
async function addSettlements(till: Till, count: number): Promise<void> {
  await execute(
    till.databaseUrl,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, closed_at, due_at)
      select 'stl_' || md5('${till.merchantId}' || n), '${till.merchantId}', 'live', '${chain.asset}', n, 1, 'due',
        now() - interval '10 minutes', now() - interval '10 minutes', now() - interval '10 minutes'
      from generate_series(1, ${count}) n`,
    `insert into merchant_balance (merchant_id, asset, amount, next_settlement)
      values ('${till.merchantId}', '${chain.asset}', ${count}, ${count + 1})`,
    "analyze settlement",
  );
}

const countDue = async (till: Till) =>
  Number(
    (
      await till.db
        .selectFrom("settlement")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("merchant_id", "=", till.merchantId)
        .where("state", "=", "due")
        .executeTakeFirstOrThrow()
    ).count,
  );

/** One sweep with the watcher at the head, and then every settle job that it enqueued. Returns the jobs' settlements. */
async function sweepAndSettle(till: Till, at: number): Promise<string[][]> {
  const handlers = createHandlers({ ...till.deps, isTransient: createJudge(isTransientChainError) });
  await till.watch();
  const before = till.rung.length;
  await handlers.sweep({ at }, signal);
  const jobs = till.rung
    .slice(before)
    .filter(({ queue }) => queue === "settle")
    .map(({ bell }) => bell.data as { settlementIds: [string, ...string[]] });
  for (const job of jobs) await handlers.settle(job, signal);
  return jobs.map(({ settlementIds }) => settlementIds);
}

test("20,000 settlements without a destination enqueue nothing, delay no other merchant, and are paid once there is one", async () => {
  const till = await makeTill(chain);
  const blocked = await makeTill(chain, { databaseUrl: till.databaseUrl, clock: till.clock, settles: false });
  await addSettlements(blocked, 20_000);
  const paymentId = await till.pay(await fundBuyer(chain));
  till.clock.advance(5_000);

  await sweepAndSettle(till, 1);
  expect((await till.settlementOf(paymentId)).state).toBe("paying");
  const jobs: number[] = [];
  for (let sweep = 1; sweep <= 20; sweep += 1) {
    till.clock.advance(10_000);
    jobs.push((await sweepAndSettle(till, 1 + sweep)).length);
  }
  expect(jobs).toEqual(Array(20).fill(0));
  expect(await countDue(blocked)).toBe(20_000);

  await blocked.addDestination();
  const sizes: number[] = [];
  for (let sweep = 1; sweep <= 5; sweep += 1) {
    till.clock.advance(1_000);
    for (const ids of await sweepAndSettle(till, 100 + sweep)) sizes.push(ids.length);
  }
  // In bounded parts, one after the other.
  expect(await countDue(blocked)).toBe(20_000 - sizes.reduce((sum, size) => sum + size, 0));
  expect(sizes.length).toBe(5);
  expect(Math.max(...sizes)).toBe(100);
});
