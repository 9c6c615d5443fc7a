import { isDeepStrictEqual } from "node:util";
import { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { createPayment, waitFinal } from "../../local/buyer-client.ts";
import { fundBuyer, startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { inRealTime } from "../support/in-real-time.ts";
import { startPrivateRedis } from "../support/private-services.ts";
import { scrape, sumOf } from "../support/scrape.ts";
import { confirmUntilFinal, signPayment } from "../support/sign-payments.ts";
import { waitFor } from "../support/wait-for.ts";
import {
  type ReceivedWebhook,
  registerEndpointIn,
  startWebhookEndpoint,
  verifyReceivedWebhook,
} from "../support/webhook-endpoint.ts";

const chain = await startChain();
const redis = await startPrivateRedis();
const fleet = await startFleet({ chain, workers: 1, redis: { url: redis.url, prefix: "hooks" } });
const endpoint = await startWebhookEndpoint();
const { secret } = await registerEndpointIn(fleet.databaseUrl, fleet.shop.caller.merchantId, endpoint.url);

beforeEach(() => {
  endpoint.answer(200);
  endpoint.arrivals.length = 0;
});

/** Kills every running worker and starts a new one. */
async function replaceWorkers(): Promise<void> {
  await Promise.all(fleet.workers.map((worker) => worker.kill("SIGKILL")));
  await fleet.addWorker();
}

test(
  "the endpoint receives each transition of a live payment once and promptly, from its creation to its payout",
  inRealTime,
  async () => {
    const readCounts = async () => {
      const samples = await scrape(fleet.workers[0]?.metricsUrl ?? "");
      return {
        delivered: sumOf(samples, "pay_webhook_deliveries_total", { outcome: "delivered" }) ?? 0,
        reenqueued: sumOf(samples, "pay_sweep_reenqueued_total", { queue: "deliver-webhook" }) ?? 0,
      };
    };
    // The worker counts since its start, so a repetition of this test begins with other numbers. Deliveries of the failed try
    // end first.
    let before = await readCounts();
    const isQuiet = async () => {
      const earlier = before;
      before = await readCounts();
      return isDeepStrictEqual(before, earlier);
    };
    await waitFor(isQuiet, { within: 20_000, every: 1_000, what: "two equal reads of the counters" });
    const signed = await signPayment(fleet.shop, chain, await fundBuyer(chain), { referenceId: "order 42" });
    expect(await confirmUntilFinal(fleet.shop, signed)).toMatchObject({ status: "succeeded" });
    const ownTypes = () => endpoint.of(signed.paymentId).map(({ event }) => event.type);
    await waitFor(() => ownTypes().includes("payment.settled"), {
      within: 20_000,
      what: "the event of the payout",
    });
    expect(ownTypes().toSorted()).toEqual([
      "payment.created",
      "payment.processing",
      "payment.settled",
      "payment.succeeded",
    ]);
    for (const arrival of endpoint.of(signed.paymentId)) {
      verifyReceivedWebhook(secret, arrival);
      expect(arrival.event.data).toMatchObject({ payment_id: signed.paymentId, live: true, reference_id: "order 42" });
      const waited = Number(arrival.headers["svix-timestamp"]) - Date.parse(arrival.event.created_at) / 1000;
      expect(waited, arrival.event.type).toBeLessThan(5);
    }
    // The worker counts a delivery after the endpoint has responded.
    const countNew = async () => (await readCounts()).delivered - before.delivered;
    await waitFor(async () => (await countNew()) >= 4, { within: 20_000, what: "the counted deliveries" });
    expect(await countNew()).toBe(4);
    // A regularly due delivery is not a retry.
    expect((await readCounts()).reenqueued - before.reenqueued).toBe(0);
  },
);

test("a worker killed between the endpoint's response and its record delivers the same event again", async () => {
  endpoint.answer((_arrival, response) => {
    endpoint.answer(200);
    void replaceWorkers().then(() => response.end());
  });
  await createPayment(fleet.shop, { referenceId: "twice", cents: "100" });
  await waitFor(() => endpoint.arrivals.length === 2, { within: 60_000, what: "the second delivery" });
  const [first, second] = endpoint.arrivals as [ReceivedWebhook, ReceivedWebhook];
  expect(second.event.id).toBe(first.event.id);
  expect(second.body).toBe(first.body);
  verifyReceivedWebhook(secret, second);
});

test("a restart of all workers and a FLUSHALL lose no pending delivery, and payments continue meanwhile", async () => {
  endpoint.answer(500);
  const paymentId = await createPayment(fleet.shop, { referenceId: "later", cents: "100" });
  await waitFor(() => endpoint.arrivals.length === 1, { within: 20_000, what: "the first attempt" });
  endpoint.answer(200);
  const connection = new Redis(redis.url);
  await connection.flushall();
  connection.disconnect();
  await replaceWorkers();
  await waitFor(() => endpoint.of(paymentId).length === 2, { within: 30_000, what: "the second attempt" });
  const [first, second] = endpoint.arrivals as [ReceivedWebhook, ReceivedWebhook];
  expect(second.body).toBe(first.body);
  const at = ({ headers }: ReceivedWebhook) => Number(headers["svix-timestamp"]);
  expect(at(second) - at(first)).toBeGreaterThanOrEqual(4);
});

test("an endpoint that never responds delays no payment", inRealTime, async () => {
  endpoint.answer(() => undefined);
  const signed = await signPayment(fleet.shop, chain, await fundBuyer(chain));
  expect(await confirmUntilFinal(fleet.shop, signed, 14_000)).toMatchObject({ status: "succeeded" });
  expect(await waitFinal(fleet.shop, signed.paymentId, 1_000)).toMatchObject({ status: "succeeded" });
});
