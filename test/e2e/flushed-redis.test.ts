import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { fundBuyers, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { startPrivateRedis } from "../support/private-services.ts";
import { confirmUntilFinal, signPayments } from "../support/sign-payments.ts";

const COUNT = 50;

test("FLUSHALL during 50 payments loses no payment and pays none twice", async () => {
  const chain = await startChain();
  const service = await startPrivateRedis();
  const fleet = await startFleet({ chain, redis: { url: service.url, prefix: "flushed" } });
  const signed = await signPayments(fleet.shop, chain, await fundBuyers(chain, 10), COUNT);

  const redis = new Redis(service.url);
  const paying = signed.map((one) => confirmUntilFinal(fleet.shop, one));
  // Three times, during confirms, relays, watching and payouts.
  for (const share of [0.1, 0.5, 0.9]) {
    await Promise.race([Promise.all(paying), firstOf(paying, Math.ceil(COUNT * share))]);
    await redis.flushall();
  }
  redis.disconnect();

  const ends = await Promise.all(paying);
  expect(ends.map((end) => end.status)).toEqual(signed.map(() => "succeeded"));
  await waitUntilIdle(fleet);
  await expectSound(fleet, chain, { succeeded: COUNT });
});

/** Resolves when the given number of promises has resolved. */
function firstOf(promises: readonly Promise<unknown>[], count: number): Promise<void> {
  let left = count;
  return new Promise((resolve, reject) => {
    for (const promise of promises)
      promise.then(() => {
        left -= 1;
        if (left === 0) resolve();
      }, reject);
  });
}
