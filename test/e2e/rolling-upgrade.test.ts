import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { expect, test } from "vitest";
import { checkSchema } from "../../db/check-schema.ts";
import { openDb } from "../../db/open.ts";
import { cancel } from "../../local/buyer-client.ts";
import { addCleanup } from "../support/cleanups.ts";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startLoadBalancer } from "../support/load-balancer.ts";
import { buildNextRelease, laterMigrations, nextMigration } from "../support/next-release/build-release.ts";
import { runProgram } from "../support/run-program.ts";
import { scrape, sumOf } from "../support/scrape.ts";
import type { SpawnedProcess } from "../support/spawn-process.ts";
import { startUpgradeLoad } from "../support/upgrade-load.ts";

// Two releases side by side: this one, and a next one that is built from its sources with a real change. The proof over 2,000
// payments takes some minutes, so `npm test` pays fewer:
//   UPGRADE_PAYMENTS=2000 npx vitest run --project e2e test/e2e/rolling-upgrade.test.ts
const payments = Number(process.env["UPGRADE_PAYMENTS"] ?? 150);
const buyersAtOnce = payments < 1_000 ? 4 : 12;
/** The periods between two changes of the fleet, in each of which the same number of payments is made. */
const periods = 7;

/**
 * The client uses each connection for one request. The shipped proxy closes idle connections after a second, and an api that leaves
 * waits two seconds for that. On a busy machine timers are late, and a request on an idle connection would meet an api that is gone.
 */
function reuseNoConnections(): void {
  const former = getGlobalDispatcher();
  setGlobalDispatcher(new Agent({ pipelining: 0 }));
  addCleanup(() => setGlobalDispatcher(former));
}

/** Starts an api and a worker of a release. */
const join = (fleet: Fleet, build: string | undefined) =>
  Promise.all([fleet.addApi({}, build), fleet.addWorker({}, build)]);

/** Returns how many jobs a process could not run, and will not retry. */
async function countFailedJobs({ metricsUrl }: SpawnedProcess): Promise<number> {
  return sumOf(await scrape(metricsUrl), "pay_jobs_total", { outcome: "failed" }) ?? 0;
}

test("a release is rolled out, back and out again under load, and no request and no payment fails", async () => {
  reuseNoConnections();
  const next = await buildNextRelease();
  const chain = await startChain();
  const fleet = await startFleet({ chain, apis: 2, workers: 2 });
  const buyers = await fundBuyers(chain, buyersAtOnce);
  const balancer = await startLoadBalancer();
  const serving = new Set(fleet.apis);
  balancer.to(() => [...serving].map(({ url }) => url));
  const ended: SpawnedProcess[] = [];
  // Failed jobs of work that another worker has done since leave Redis, so their workers are asked.
  let failedJobs = 0;
  /** Ends processes as an orchestrator does: an api gets no new connections from then on. */
  const leave = (all: readonly SpawnedProcess[]) =>
    Promise.all(
      all.map(async (one) => {
        serving.delete(one);
        failedJobs += await countFailedJobs(one);
        await one.kill("SIGTERM");
        ended.push(one);
      }),
    );
  /** Replaces every process by an api and a worker of a release. Both releases run while payments are made. */
  const replaceBy = async (build: string | undefined) => {
    const former = [...fleet.apis, ...fleet.workers].filter((one) => !one.isGone());
    const [api] = await join(fleet, build);
    serving.add(api);
    await load.more(payments / periods);
    await leave(former);
  };
  const load = startUpgradeLoad({ ...fleet.shop, baseUrl: balancer.url }, chain.id, buyers);
  const begun = performance.now();
  await load.more(payments / periods);
  expect(await next.run("migrate", { DATABASE_URL: fleet.databaseUrl })).toBe(`migrated: ${nextMigration}`);
  await load.more(payments / periods);
  await replaceBy(next.build);
  await load.more(payments / periods);

  // The former release's `migrate` runs before its processes, and changes nothing.
  const migrate = await runProgram("migrate", [], { DATABASE_URL: fleet.databaseUrl });
  expect(migrate).toMatchObject({ code: 0, stdout: "the schema is up to date\n" });
  await replaceBy(undefined);
  await load.more(payments / periods);

  await replaceBy(next.build);
  expect(await next.migrateLater(fleet.databaseUrl)).toBe(`migrated: ${laterMigrations.join(", ")}`);
  await load.more(Math.max(payments / periods, payments - load.counts.paid));
  const seconds = (performance.now() - begun) / 1_000;
  await load.stop();

  const errors = [...fleet.apis, ...fleet.workers]
    .flatMap((one) => one.records())
    .filter(({ level }) => level === "error");
  expect(errors).toEqual([]);
  const { counts, failures } = load;
  console.log(JSON.stringify({ ...counts, failed: failures.length, seconds: Math.round(seconds) }));
  expect(failures).toEqual([]);
  expect(await Promise.all(ended.map(({ gone }) => gone))).toEqual(ended.map(() => ({ code: 0, signal: null })));
  for (const one of fleet.workers.filter((worker) => !worker.isGone())) failedJobs += await countFailedJobs(one);
  expect(failedJobs, "jobs that failed for good").toBe(0);
  await expectBothReleases(fleet);

  const open = await execute(fleet.databaseUrl, "select id from payment where state = 'requires_action'");
  const shop = { ...fleet.shop, baseUrl: balancer.url };
  for (const { id } of open) await cancel(shop, String(id));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: counts.paid });
}, 900_000);

/** Expects that both releases have created payments and run jobs, and that this one does not start any more. */
async function expectBothReleases({ databaseUrl }: Fleet): Promise<void> {
  const sources = await execute(databaseUrl, "select source, count(*)::int as count from payment group by source");
  expect(sources.map(({ source }) => source).toSorted()).toEqual(["former release", "next release"]);
  const [jobs] = await execute(
    databaseUrl,
    `select count(*) filter (where o.attempt_id is null)::int as former, count(o.attempt_id)::int as next
    from attempt a left join attempt_origin o on o.attempt_id = a.id`,
  );
  console.log(JSON.stringify({ sources, jobs }));
  expect(Object.values(jobs ?? {}).every((count) => Number(count) > 0)).toBe(true);
  const db = openDb(databaseUrl, { max: 1 });
  addCleanup(() => db.destroy());
  expect(await checkSchema(db)).toMatchObject({ state: "newer" });
}
