import { describe, expect, test } from "vitest";
import { newId } from "../../../payments/ids.ts";
import { catalog } from "../../../queues/catalog.ts";
import type { Outcome } from "../../../queues/consume.ts";
import { openQueues, passing } from "../../support/queue.ts";
import { waitFor } from "../../support/wait-for.ts";

const done: Outcome = { done: true };
const within = { within: 20_000 };
const isEmpty = async (queues: Awaited<ReturnType<typeof openQueues>>) =>
  (await queues.count("expire-payment")).all === 0;

async function opened() {
  const queues = await openQueues();
  await queues.ready();
  const paymentId = newId("pay");
  return { queues, paymentId, ring: (again = 0) => queues.ring("expire-payment", [{ data: { paymentId }, again }]) };
}

describe("a handler that says", () => {
  test("to look again burns no try, however often it says so, and nothing is kept", async () => {
    const { queues, ring } = await opened();
    const most = catalog["expire-payment"].attempts * 2;
    let looks = 0;
    queues.serve("expire-payment", async () => (++looks < most ? { rerunInMs: 1 } : done));
    await ring();
    await waitFor(() => looks === most, within);
    await waitFor(() => isEmpty(queues), within);
    expect(looks).toBe(most);
  });

  test("that there is passing trouble is tried again, and lets go in the end without a failed job", async () => {
    const { queues, ring } = await opened();
    let tries = 0;
    queues.serve("expire-payment", async () => {
      tries += 1;
      throw passing();
    });
    await ring();
    // The waits between the tries are minutes in all; here each is cut short.
    await waitFor(async () => {
      for (const job of await queues.queue("expire-payment").getDelayed()) await job.promote().catch(() => undefined);
      return tries === catalog["expire-payment"].attempts;
    }, within);
    await waitFor(() => isEmpty(queues), within);
    expect(tries).toBe(catalog["expire-payment"].attempts);
    // The sweep's next ring is not blocked by anything.
    await ring(1);
    await waitFor(() => tries > catalog["expire-payment"].attempts, within);
  });

  test("that there is passing trouble waits before the next try", async () => {
    const { queues, ring } = await opened();
    const times: number[] = [];
    queues.serve("expire-payment", async () => {
      times.push(Date.now());
      if (times.length === 1) throw passing();
      return done;
    });
    await ring();
    await waitFor(() => times.length === 2, within);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(catalog["expire-payment"].backoffMs * 0.9);
  });

  test("anything else is kept at once as a failed job, and can be run again from there", async () => {
    const { queues, ring } = await opened();
    let broken = true;
    let runs = 0;
    queues.serve("expire-payment", async () => {
      runs += 1;
      if (broken) throw new Error("a bug");
      return done;
    });
    await ring();
    await waitFor(async () => (await queues.count("expire-payment")).failed === 1, within);
    const [job] = await queues.queue("expire-payment").getFailed();
    expect(runs, "a bug is not tried again").toBe(1);
    expect(job?.failedReason).toBe("Error: a bug");
    broken = false;
    await job?.retry();
    await waitFor(() => isEmpty(queues), within);
    expect(runs).toBe(2);
  });
});

test("a failed job that is kept does not block the sweep's next ring for the same row", async () => {
  const { queues, ring } = await opened();
  let runs = 0;
  queues.serve("expire-payment", async () => {
    runs += 1;
    if (runs === 1) throw new Error("a bug");
    return done;
  });
  await ring();
  await waitFor(async () => (await queues.count("expire-payment")).failed === 1, within);
  await ring();
  await ring(1);
  await waitFor(() => runs === 2, within);
  await waitFor(async () => (await queues.count("expire-payment")).all === 1, within);
  expect(runs, "the ring with the old number was the kept job's").toBe(2);
});

test.each([
  ["paymentId", { paymentId: "pay_s3cr3t" }],
  ["paymentId", {}],
  ["", { paymentId: newId("pay"), signature: "0xs3cr3t" }],
])("a payload that does not fit is kept with the member's name (%j) and without its value", async (member, data) => {
  const { queues } = await opened();
  let runs = 0;
  queues.serve("expire-payment", async () => {
    runs += 1;
    return done;
  });
  await queues.queue("expire-payment").add("expire-payment", data);
  await waitFor(async () => (await queues.count("expire-payment")).failed === 1, within);
  const [job] = await queues.queue("expire-payment").getFailed();
  expect(job?.failedReason).toContain(`not a expire-payment job: ${member}`);
  expect(job?.failedReason).not.toContain("s3cr3t");
  expect(runs).toBe(0);
});

test("the same piece of work rung many times while it waits or runs is run once", async () => {
  const { queues, ring } = await opened();
  await Promise.all(Array.from({ length: 10 }, () => ring()));
  expect(await queues.count("expire-payment")).toMatchObject({ all: 1 });
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  queues.serve("expire-payment", async () => {
    runs += 1;
    await gate.promise;
    return done;
  });
  await waitFor(() => runs === 1, within);
  await Promise.all(Array.from({ length: 10 }, () => ring()));
  gate.resolve();
  await waitFor(() => isEmpty(queues), within);
  expect(runs).toBe(1);
});

test("work that is rung for later is not run before its time", async () => {
  const { queues, paymentId } = await opened();
  const begun = Date.now();
  let ranAt = 0;
  queues.serve("expire-payment", async () => {
    ranAt = Date.now();
    return done;
  });
  await queues.ring("expire-payment", [{ data: { paymentId }, delayMs: 400 }]);
  await waitFor(() => ranAt > 0, within);
  expect(ranAt - begun).toBeGreaterThanOrEqual(395);
});

test("confirms that are rung for at the same moment are one job, and the sweep's rings are their own", async () => {
  const { queues } = await opened();
  const [one, two, three] = [newId("att"), newId("att"), newId("att")];
  await Promise.all([one, two].map((id) => queues.ring("verify-signature", [{ data: { attemptIds: [id] } }])));
  await queues.ring("verify-signature", [{ data: { attemptIds: [three] } }]);
  await queues.ring("verify-signature", [{ data: { attemptIds: [two] }, again: 1 }]);
  const served: string[][] = [];
  queues.serve("verify-signature", async ({ attemptIds }) => {
    served.push([...attemptIds]);
    return done;
  });
  await waitFor(() => served.length === 3, within);
  expect(served.toSorted((a, b) => b.length - a.length)[0]).toEqual([one, two]);
  expect(served).toEqual(expect.arrayContaining([[three], [two]]));
});
