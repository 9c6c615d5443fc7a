import { expect, test } from "vitest";
import { newId } from "../../../payments/ids.ts";
import { startPrivateRedis } from "../../support/private-services.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";
import { makeMerchant, makePayment, startApi } from "../api/start-api.ts";

/** How long a person may wait for a response. */
const SOON_MS = 4_000;
const makeJob = () => ({ data: { paymentId: newId("pay", new Date()) } });

/** A Redis that can be stopped: its connections stay open and it responds to nothing until it continues. */
async function hangable() {
  const redis = await startPrivateRedis();
  const signal = (name: "SIGSTOP" | "SIGCONT") => process.kill(redis.pid() as number, name);
  return {
    url: redis.url,
    /** Runs `work` while Redis hangs, for at most eight seconds, and returns how long it took, in milliseconds. */
    async whileHung(work: () => Promise<unknown>): Promise<number> {
      signal("SIGSTOP");
      const begun = Date.now();
      try {
        await Promise.race([work(), new Promise((resolve) => setTimeout(resolve, 2 * SOON_MS).unref())]);
        return Date.now() - begun;
      } finally {
        signal("SIGCONT");
      }
    },
  };
}

test("enqueueing does not wait for a Redis that hangs, for one job or for many", async () => {
  const redis = await hangable();
  const queues = await openQueues({ url: redis.url });
  await queues.ready();
  await queues.enqueue("expire-payment", [makeJob()]);
  const took = await redis.whileHung(async () => {
    await Promise.all([
      queues.enqueue("expire-payment", [makeJob()]),
      queues.enqueue("expire-payment", [makeJob(), makeJob()]),
    ]);
  });
  expect(took).toBeLessThan(SOON_MS);
  const failures = (await queues.metrics.enqueueFailures.get()).values.find(
    (one) => one.labels.queue === "expire-payment",
  );
  expect(failures?.value).toBe(3);
  // Enqueueing works again by itself.
  await waitFor(
    async () => {
      const last = makeJob();
      await queues.enqueue("expire-payment", [last]);
      return await queues.queue("expire-payment").getJob(`expire-payment-${last.data.paymentId}-0`);
    },
    { within: 10_000, what: "a job is enqueued" },
  );
});

test("an HTTP call that creates or reads a payment does not wait for a Redis that hangs", async () => {
  const redis = await hangable();
  const api = await startApi({ redisUrl: redis.url });
  const merchant = await makeMerchant(api);
  await makePayment(api, merchant);
  let id = "";
  const took = await redis.whileHung(async () => {
    id = await makePayment(api, merchant);
    const answer = await api.get(`/v1/gateway/payment/${id}/status`, { "api-key": merchant.key });
    expect(answer).toMatchObject({ status: 200, body: { status: "requires_action" } });
  });
  expect(took).toBeLessThan(SOON_MS);
  expect(id).toMatch(/^pay_/);
  // The row stores when its job is due: nothing is lost.
  const row = await api.db.selectFrom("payment").select(["state", "due_at"]).where("id", "=", id).executeTakeFirst();
  expect(row).toMatchObject({ state: "requires_action", due_at: expect.any(Date) });
});
