import { describe, expect, test, vi } from "vitest";
import { newId } from "../../../payments/ids.ts";
import { catalog } from "../../../queues/catalog.ts";
import type { JobResult } from "../../../queues/consume.ts";
import { queuePrefix } from "../../../queues/queue-prefix.ts";
import { openQueues, transientError } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

const done: JobResult = { done: true };
const within = { within: 20_000 };
const chain = "eip155:1";
const isEmpty = async (queues: Awaited<ReturnType<typeof openQueues>>) =>
  (await queues.count("expire-payment")).all === 0;

async function opened() {
  const queues = await openQueues();
  await queues.ready();
  const paymentId = newId("pay", new Date());
  return {
    queues,
    paymentId,
    enqueue: (retry = 0) => queues.enqueue("expire-payment", [{ data: { paymentId }, retry }]),
  };
}

/** Runs `work` while timers stand still, because a busy machine can make a request later than the queues wait for it. */
async function withoutTime(work: () => Promise<void>): Promise<void> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    await work();
  } finally {
    vi.useRealTimers();
  }
}

describe("the outcome of a handler", () => {
  test("a handler that asks to run again uses no attempt, however often it does so, and leaves no job", async () => {
    const { queues, enqueue } = await opened();
    const most = catalog["expire-payment"].attempts * 2;
    let calls = 0;
    queues.serve("expire-payment", async () => (++calls < most ? { rerunInMs: 1 } : done));
    await enqueue();
    await waitFor(() => calls === most, within);
    await waitFor(() => isEmpty(queues), within);
    expect(calls).toBe(most);
  });

  test("a handler with transient errors is retried, and after its last attempt leaves no failed job", async () => {
    const { queues, enqueue } = await opened();
    let tries = 0;
    queues.serve("expire-payment", async () => {
      tries += 1;
      throw transientError();
    });
    await enqueue();
    // The delays between attempts add up to minutes; the test promotes each delayed job at once.
    await waitFor(async () => {
      for (const job of await queues.queue("expire-payment").getDelayed()) await job.promote().catch(() => undefined);
      return tries === catalog["expire-payment"].attempts;
    }, within);
    await waitFor(() => isEmpty(queues), within);
    expect(tries).toBe(catalog["expire-payment"].attempts);
    // The sweep can enqueue the row again.
    await enqueue(1);
    await waitFor(() => tries > catalog["expire-payment"].attempts, within);
  });

  test("a handler with a transient error waits before its next attempt", async () => {
    const { queues, enqueue } = await opened();
    const times: number[] = [];
    queues.serve("expire-payment", async () => {
      times.push(Date.now());
      if (times.length === 1) throw transientError();
      return done;
    });
    await enqueue();
    await waitFor(() => times.length === 2, within);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(catalog["expire-payment"].backoffMs * 0.9);
  });

  test("a handler with any other error leaves a failed job at once, which can be retried", async () => {
    const { queues, enqueue } = await opened();
    let broken = true;
    let runs = 0;
    queues.serve("expire-payment", async () => {
      runs += 1;
      if (broken) throw new Error("a bug");
      return done;
    });
    await enqueue();
    await waitFor(async () => (await queues.count("expire-payment")).failed === 1, within);
    const [job] = await queues.queue("expire-payment").getFailed();
    expect(runs, "a bug is not retried").toBe(1);
    expect(job?.failedReason).toBe("Error: a bug");
    broken = false;
    await job?.retry();
    await waitFor(() => isEmpty(queues), within);
    expect(runs).toBe(2);
  });
});

test("a failed job does not keep the sweep from enqueueing the same row again", async () => {
  const { queues, enqueue } = await opened();
  let runs = 0;
  queues.serve("expire-payment", async () => {
    runs += 1;
    if (runs === 1) throw new Error("a bug");
    return done;
  });
  await enqueue();
  await waitFor(async () => (await queues.count("expire-payment")).failed === 1, within);
  await enqueue();
  await enqueue(1);
  await waitFor(() => runs === 2, within);
  await waitFor(async () => (await queues.count("expire-payment")).all === 1, within);
  expect(runs, "the job with the old number is the failed one").toBe(2);
});

test.each([
  ["paymentId", { paymentId: "pay_s3cr3t" }],
  ["paymentId", {}],
])("a job whose data does not fit fails with the member's name (%j) and without its value", async (member, data) => {
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

test("a job of the next release, whose data has one more member, is run", async () => {
  const { queues } = await opened();
  const received: unknown[] = [];
  queues.serve("expire-payment", async (data) => {
    received.push(data);
    return done;
  });
  const paymentId = newId("pay", new Date());
  await queues.queue("expire-payment").add("expire-payment", { paymentId, reason: "new" });
  await waitFor(() => received.length === 1, within);
  expect(received).toEqual([{ paymentId }]);
});

test("work that is enqueued many times while it waits or runs is run once", async () => {
  const { queues, enqueue } = await opened();
  await Promise.all(Array.from({ length: 10 }, () => enqueue()));
  expect(await queues.count("expire-payment")).toMatchObject({ all: 1 });
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  queues.serve("expire-payment", async () => {
    runs += 1;
    await gate.promise;
    return done;
  });
  await waitFor(() => runs === 1, within);
  await Promise.all(Array.from({ length: 10 }, () => enqueue()));
  gate.resolve();
  await waitFor(() => isEmpty(queues), within);
  expect(runs).toBe(1);
});

test("the sweep of a second is run once, although a second worker enqueues it after it has ended", async () => {
  const { queues } = await opened();
  const served: number[] = [];
  queues.serve("sweep", async ({ at }) => {
    served.push(at);
    return done;
  });
  for (const at of [1, 1, 2]) {
    await queues.enqueue("sweep", [{ data: { at } }]);
    await waitFor(async () => served.includes(at) && (await queues.count("sweep")).all === 0, within);
  }
  expect(served).toEqual([1, 2]);
});

test("delayed work does not run before its time", async () => {
  const { queues, paymentId } = await opened();
  const begun = Date.now();
  let ranAt = 0;
  queues.serve("expire-payment", async () => {
    ranAt = Date.now();
    return done;
  });
  await queues.enqueue("expire-payment", [{ data: { paymentId }, delayMs: 400 }]);
  await waitFor(() => ranAt > 0, within);
  expect(ranAt - begun).toBeGreaterThanOrEqual(395);
});

test("confirms that are enqueued at the same moment share one job, and jobs of the sweep stay separate", async () => {
  const { queues } = await opened();
  const [one, two, three] = [newId("att", new Date()), newId("att", new Date()), newId("att", new Date())];
  await Promise.all(
    [one, two].map((id) => queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [id] } }])),
  );
  await queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [three] } }]);
  await queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [two] }, retry: 1 }]);
  const served: string[][] = [];
  queues.serve("verify-signature", async ({ attemptIds }) => {
    served.push([...attemptIds]);
    return done;
  });
  await waitFor(() => served.length === 3, within);
  expect(served.toSorted((a, b) => b.length - a.length)[0]).toEqual([one, two]);
  expect(served).toEqual(expect.arrayContaining([[three], [two]]));
});

test("confirms on two chains that are enqueued at the same moment become one job for each chain", async () => {
  const { queues } = await opened();
  const ids = Array.from({ length: 4 }, () => newId("att", new Date()));
  const chains = [chain, "eip155:2"];
  const data = ids.map((id, index) => ({ chain: chains[index % 2] ?? "", attemptIds: [id] as [string] }));
  await Promise.all(data.map((one) => queues.enqueue("verify-signature", [{ data: one }])));
  const served: unknown[] = [];
  queues.serve("verify-signature", async ({ chain, attemptIds }) => {
    served.push([chain, ...attemptIds]);
    return done;
  });
  await waitFor(() => served.length === 2, within);
  const expected = [
    [chain, ids[0], ids[2]],
    ["eip155:2", ids[1], ids[3]],
  ];
  expect(served).toEqual(expect.arrayContaining(expected));
});

test("confirms that arrive while a batch is verified share the next job, and an end that is never reported holds nothing", async () => {
  const { queues } = await opened();
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const [first, second, third, fourth] = [
    newId("att", new Date()),
    newId("att", new Date()),
    newId("att", new Date()),
    newId("att", new Date()),
  ];
  const enqueue = (id: string, ended?: Promise<void>) =>
    queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [id] }, ended }]);
  const iterate = () => new Promise((resolve) => setImmediate(resolve));
  await withoutTime(async () => {
    await enqueue(first, ended);
    const later = enqueue(second, new Promise(() => undefined));
    await iterate();
    await iterate();
    await Promise.all([later, enqueue(third), end()]);
    vi.advanceTimersByTime(100);
  });
  await enqueue(fourth);
  const served: string[][] = [];
  queues.serve("verify-signature", async ({ attemptIds }) => {
    served.push([...attemptIds]);
    return done;
  });
  await waitFor(() => served.length === 3, within);
  expect(served).toEqual(expect.arrayContaining([[first], [second, third], [fourth]]));
});

test.each([
  ["100 confirms", 100, 1],
  ["one request of 100 confirms", 1, 100],
])("a full job, of %s, is added although the job before it is still at work", async (_what, calls, each) => {
  const { queues } = await opened();
  const request = (ended?: Promise<void>) => {
    const attemptIds: [string] = [newId("att", new Date())];
    return { data: { chain, attemptIds }, ended };
  };
  const added: string[] = [];
  const enqueue = async (name: "verify-signature" | "verify-contract-wallet", times: number, size: number) => {
    // The job before it, whose work does not end.
    await queues.enqueue(name, [request(new Promise(() => undefined))]);
    const requests = () => Array.from({ length: size }, () => request());
    await Promise.all(Array.from({ length: times }, () => queues.enqueue(name, requests())));
    added.push(name);
  };
  await Promise.all([enqueue("verify-contract-wallet", 1, 1), enqueue("verify-signature", calls, each)]);
  expect(added).toEqual(["verify-signature", "verify-contract-wallet"]);
});

test("a confirm whose wait for others fails is enqueued, and so are the confirms after it", async () => {
  const { queues } = await opened();
  const [first, second] = [newId("att", new Date()), newId("att", new Date())];
  const others = () => {
    throw new Error("the others are not known");
  };
  for (const id of [first, second])
    await queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [id] }, others }]);
  expect((await queues.count("verify-signature")).all).toBe(2);
});

test("a confirm waits for those that are on their way with it, and not for one that does not come", async () => {
  const { queues } = await opened();
  const [first, second, third] = [newId("att", new Date()), newId("att", new Date()), newId("att", new Date())];
  const enqueue = (id: string, others?: () => Promise<unknown>) =>
    queues.enqueue("verify-signature", [{ data: { chain, attemptIds: [id] }, others }]);
  const arrived = Promise.withResolvers<void>();
  await withoutTime(async () => {
    const waiting = enqueue(first, () => arrived.promise);
    await new Promise((resolve) => setImmediate(resolve));
    const joined = enqueue(second);
    arrived.resolve();
    await Promise.all([waiting, joined]);
  });
  await enqueue(third, () => new Promise(() => undefined));
  const served: string[][] = [];
  queues.serve("verify-signature", async ({ attemptIds }) => {
    served.push([...attemptIds]);
    return done;
  });
  await waitFor(() => served.length === 2, within);
  expect(served).toEqual(expect.arrayContaining([[first, second], [third]]));
});

test("what BullMQ notes about ended jobs does not accumulate in Redis", async () => {
  const { queues } = await opened();
  const jobs = Array.from({ length: 300 }, () => ({ data: { paymentId: newId("pay", new Date()) } }));
  await queues.enqueue("expire-payment", jobs);
  let ended = 0;
  queues.serve("expire-payment", async () => {
    ended += 1;
    return done;
  });
  await waitFor(() => ended === jobs.length, within);
  expect(await queues.redis.xlen(`${queuePrefix(queues.prefix, "expire-payment")}:expire-payment:events`)).toBeLessThan(
    jobs.length,
  );
});
