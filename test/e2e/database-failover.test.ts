import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { roleUrl } from "../support/database-roles.ts";
import { fundBuyers, startChain, usdcBalance } from "../support/evm-chain.ts";
import { execute, namedDatabase } from "../support/execute-sql.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startReplicatedPostgres } from "../support/replicated-postgres.ts";
import { confirmUntilFinal, signPayments } from "../support/sign-payments.ts";
import { createDatabaseOn } from "../support/test-database.ts";
import { waitFor } from "../support/wait-for.ts";

// The longer runs, with every other fault at the same time, are `npm run faults -- --rare failover` and
// `--rare "failover without loss"`.
const COUNT = 20;
const CENTS = 100n;

/** Starts a fleet on a Postgres with a replica, which also serves its lists, and signs payments. */
async function startReplicatedFleet() {
  const chain = await startChain();
  const postgres = await startReplicatedPostgres();
  const databaseUrl = await createDatabaseOn(postgres.url);
  const replicaUrl = new URL(await roleUrl(databaseUrl, "api"));
  replicaUrl.port = new URL(postgres.replicaUrl).port;
  const envOf = { api: { DATABASE_REPLICA_URL: replicaUrl.href } };
  const fleet = await startFleet({ chain, databaseUrl, envOf });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 5), COUNT);
  const records = () => [...fleet.apis, ...fleet.workers].flatMap((process) => process.records());
  const countLines = (message: string) => records().filter(({ msg }) => String(msg).startsWith(message)).length;
  return { chain, postgres, fleet, signed, countLines };
}

test.concurrent("a failover to a synchronous replica during payments loses no commit and no payment", async () => {
  const { chain, postgres, fleet, signed, countLines } = await startReplicatedFleet();
  await postgres.makeSynchronous();
  const paying = signed.map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(paying);
  await postgres.failOver();

  const ends = await Promise.all(paying);
  expect(ends.map((end) => end.status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT });
  // The new timeline alone begins a new epoch, once for the whole fleet.
  await waitFor(() => countLines("database lost commits") > 0, { within: 30_000, what: "the new timeline is noticed" });
  expect(countLines("database lost commits")).toBe(1);
  const { data } = (await ask(fleet.shop, "GET", "/v1/payments")) as { data: unknown[] };
  expect(data).toHaveLength(COUNT);
});

test.concurrent("a failover that loses commits finds forgotten payments and payouts on the chain and repeats none", async () => {
  const { chain, postgres, fleet, signed, countLines } = await startReplicatedFleet();
  await postgres.catchUp();
  postgres.freeze();
  const ends = await Promise.all(signed.map((one) => confirmUntilFinal(fleet.shop, one)));
  expect(ends.map((end) => end.status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  const sum = BigInt(COUNT) * CENTS * 10_000n;
  expect(await usdcBalance(chain, fleet.destination)).toBe(sum);
  const onReplica = namedDatabase(postgres.replicaUrl, new URL(fleet.databaseUrl).pathname.slice(1));
  expect(await execute(onReplica, "select from payment where state <> 'requires_action'"), "what it knows").toEqual([]);
  const from = performance.now();
  await postgres.failOver();

  await waitFor(() => countLines("database lost commits") === 1, { within: 30_000, what: "the loss is noticed" });
  const states = async () => execute(fleet.databaseUrl, "select state, count(*)::int from payment group by state");
  await waitFor(
    async () => (await states())[0]?.["count"] === COUNT && (await states())[0]?.["state"] === "succeeded",
    {
      within: 60_000,
      what: "every payment is found on the chain",
    },
  );
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT, lost: [{ from: 0, to: from }] });
  expect(await usdcBalance(chain, fleet.destination), "no payout was made twice").toBe(sum);
});
