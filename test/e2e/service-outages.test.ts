import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startPrivatePostgres } from "../support/private-services.ts";
import { confirmUntilFinal, signPayments } from "../support/sign-payments.ts";
import { createDatabaseOn } from "../support/test-database.ts";
import { waitFor } from "../support/wait-for.ts";

// The tests mostly wait, so they run concurrently, each with its own fleet.
const COUNT = 30;
const REFUSED_MS = 20_000;

test.concurrent("a restart of Postgres during payments loses and fails no payment", async () => {
  const chain = await startChain();
  const postgres = await startPrivatePostgres();
  const fleet = await startFleet({ chain, databaseUrl: await createDatabaseOn(postgres.url) });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 6), COUNT);

  const paying = signed.map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(paying);
  await postgres.kill("SIGKILL");
  await postgres.start();

  const ends = await Promise.all(paying);
  expect(ends.map((end) => end.status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT });
});

test.concurrent("an RPC endpoint that refuses every call for 20 s delays payments but fails none", async () => {
  const chain = await startChain();
  const proxy = await startFaultProxy({ target: chain.url });
  const fleet = await startFleet({ chain, rpcUrls: [proxy.url] });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 6), COUNT);

  const paying = signed.map((one) => confirmUntilFinal(fleet.shop, one));
  await Promise.race(paying);
  proxy.refuse(true);
  const since = Date.now();
  await waitFor(() => Date.now() - since >= REFUSED_MS, { within: REFUSED_MS + 5_000, what: "the outage has lasted" });
  proxy.refuse(false);

  const ends = await Promise.all(paying);
  expect(ends.map((end) => end.status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT });
});
