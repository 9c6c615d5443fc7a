import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { createPayment, pay, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { type FleetOptions, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { clearFaults, killAtSend, killMoments } from "../support/kill-at-send.ts";
import { startPrivateRedis } from "../support/private-services.ts";
import { confirmUntilFinal, mapConcurrently, signPayment } from "../support/sign-payments.ts";
import {
  fundSolanaBuyer,
  fundSolanaBuyers,
  makeSolanaKeys,
  startTestSolana,
  type TestSolana,
  tokenBalance,
} from "../support/test-solana.ts";
import { waitFor } from "../support/wait-for.ts";

/** A blockhash is valid for 90 seconds: longer than the replacement of a killed worker takes, also on a busy machine. */
const slow = { slotMs: 600 };

/** Starts a fleet that serves only Solana. */
async function startOn(chain: TestSolana, args: { lanes?: number; proxy?: { url: string } } & Partial<FleetOptions>) {
  const { lanes, proxy, ...options } = args;
  const keys = await makeSolanaKeys(chain, lanes);
  const solana = { chain, keys, rpcUrls: [proxy?.url ?? chain.url], change: { finality: "finalized" } };
  return { fleet: await startFleet({ ...options, solana }), solana };
}

test("one fleet serves an EVM chain and Solana, and pays each payment out on its own chain", async () => {
  const [chain, there] = await Promise.all([startChain(), startTestSolana({ slotMs: 400 })]);
  const solana = { chain: there, keys: await makeSolanaKeys(there) };
  const fleet = await startFleet({ chain, solana });
  const ids = await Promise.all(
    ["one", "two"].map((referenceId) => createPayment(fleet.shop, { referenceId, cents: "1250" })),
  );
  const [one = "", two = ""] = ids;
  await pay(fleet.shop, one, await fundBuyer(chain), chain.id);
  await pay(fleet.shop, two, await fundSolanaBuyer(there), there.id);
  for (const id of ids) expect(await waitFinal(fleet.shop, id, 90_000)).toMatchObject({ status: "succeeded" });
  await waitUntilIdle(fleet);
  expect(await tokenBalance(there, fleet.solanaDestination)).toBe(12_500_000n);
  await expectSound(fleet, chain, { succeeded: 2, solana });
});

test("a worker killed before its broadcast arrives, after the cluster accepts it, and before the response arrives loses no payment and pays none twice", async () => {
  const chain = await startTestSolana(slow);
  const proxy = await startFaultProxy({ target: chain.url });
  const { fleet, solana } = await startOn(chain, { proxy, workers: 1 });
  const ids: string[] = [];
  for (const moment of killMoments) {
    const worker = fleet.workers.at(-1);
    killAtSend(proxy, { worker, moment, method: "sendTransaction" });
    const id = await createPayment(fleet.shop, { referenceId: moment, cents: "1250" });
    await pay(fleet.shop, id, await fundSolanaBuyer(chain), chain.id);
    ids.push(id);
    await waitFor(() => worker?.isGone(), { within: 30_000, what: "the worker is killed" });
    await fleet.addWorker();
    expect(await waitFinal(fleet.shop, id, 180_000)).toMatchObject({ status: "succeeded" });
    // The payouts are sent by the last worker, or by the next one that the test kills.
    if (moment === "before") await waitUntilIdle(fleet);
  }
  clearFaults(proxy);
  await waitUntilIdle(fleet);
  expect(await tokenBalance(chain, fleet.solanaDestination)).toBe(37_500_000n);
  await expectSound(fleet, undefined, { succeeded: ids.length, solana });
});

test("40 payments succeed with one transfer and one payout each while two workers that share two lanes are killed in turn and FLUSHALL runs", async () => {
  const COUNT = 40;
  const [chain, redis] = await Promise.all([startTestSolana(slow), startPrivateRedis()]);
  const place = { url: redis.url, prefix: "solana" };
  const { fleet, solana } = await startOn(chain, { lanes: 2, workers: 2, redis: place });
  const buyers = await fundSolanaBuyers(chain, COUNT);
  const client = new Redis(redis.url);
  let begun = 0;
  const ends = await mapConcurrently(buyers, 8, async (buyer) => {
    const signed = await signPayment(fleet.shop, chain, buyer);
    const paying = confirmUntilFinal(fleet.shop, signed);
    begun += 1;
    if (begun % 16 === 0) await client.flushall();
    if (begun === 12 || begun === 24) {
      await fleet.workers[begun === 12 ? 0 : 1]?.kill("SIGKILL");
      await fleet.addWorker();
    }
    return paying;
  });
  client.disconnect();
  expect(ends.map(({ status }) => status)).toEqual(buyers.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  expect(await tokenBalance(chain, fleet.solanaDestination)).toBe(BigInt(COUNT) * 1_000_000n);
  await expectSound(fleet, undefined, { succeeded: COUNT, solana });
});
