import { setTimeout as pause } from "node:timers/promises";
import { moveRows } from "../../db/moves.ts";
import { openDb } from "../../db/open.ts";
import { insertPayment } from "../../db/queries/payments.ts";
import type { Pool } from "../../db/tables.ts";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { newId } from "../../payments/ids.ts";
import { createPaymentChangePublisher } from "../../queues/payment-changes.ts";
import { openRetryingRedis } from "../../queues/redis-connections.ts";
import { percentile, printTable, runPool } from "./bench-stats.ts";
import { createClient } from "./http-client.ts";
import { collectHeap, type Heap } from "./process-heap.ts";

type Args = { waiters: number; seconds: number; say: Say };
type OfWaiter = Omit<Heap, "pid">;
/** `ofWaiter`: what a long poll of the second half has added to the memory; `afterChanges`: the same after the changes. */
type Woken = { p50: number; p99: number; worst: number; changed: number; ofWaiter: OfWaiter; afterChanges: OfWaiter };

/** The number of payments that change each second. */
const CHANGES_PER_SECOND = 500;
/**
 * What the many long polls may take: from the commit to the response, and resident memory of each further one after a garbage
 * collection. Before a collection, the memory says how long ago the last one was.
 */
const LIMITS = { p99Ms: 50, bytes: 20_000 };
/** The number of connections that are opened at once. The kernel resets some when more wait than its queue takes. */
const CONNECTING = 250;
/** The number of long polls in the reference. */
const FEW = 50;

/**
 * Measures many long polls on one api process while payments change: the time from a payment's commit to the response.
 * The reference is the same with few long polls; the difference is the cost of the waiting ones.
 */
export async function benchPolls(stack: StackFile, args: Args): Promise<void> {
  const db = openDb(stack.postgresUrl, { max: 8, applicationName: "pay-bench" });
  const redis = openRetryingRedis(stack.redisUrl, () => undefined);
  try {
    const publishPaymentChanges = createPaymentChangePublisher(redis, process.env["REDIS_PREFIX"] ?? "pay");
    const [pid] = stack.processes.api;
    if (pid === undefined) throw new Error("the stack has no api");
    const change = async (id: string) => {
      await moveRows(db, "payment", { ids: [id], from: "requires_action", to: "cancelled", at: new Date() });
      const committed = performance.now();
      await publishPaymentChanges([id]);
      return committed;
    };
    const run = async (waiters: number) => {
      args.say(`creating ${waiters + CHANGES_PER_SECOND * args.seconds} payments`);
      const ids = await insertPayments(db, stack, waiters + CHANGES_PER_SECOND * args.seconds);
      args.say(`${waiters} long polls while ${CHANGES_PER_SECOND} payments change per second, for ${args.seconds} s`);
      return wake(stack, { ids, waiters, change, readHeap: () => collectHeap(pid) });
    };
    const few = await run(FEW);
    const many = await run(args.waiters);
    const memory = ({ residentBytes, heldBytes }: OfWaiter) =>
      `${residentBytes.toFixed(0)} bytes, of which ${heldBytes.toFixed(0)} on the heap`;
    const line = ({ p50, p99, worst, changed }: Woken) =>
      `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms, worst ${worst.toFixed(1)} ms, of ${changed}`;
    printTable([
      [`commit to response, ${args.waiters} polls`, line(many)],
      [`commit to response, ${FEW} polls`, line(few)],
      ["ratio of the p99", (many.p99 / few.p99).toFixed(2)],
      ["memory of a further waiter", memory(many.ofWaiter)],
      ["the same after the changes", memory(many.afterChanges)],
    ]);
    const { residentBytes } = many.ofWaiter;
    if (many.p99 > LIMITS.p99Ms) throw new Error(`the p99 is over ${LIMITS.p99Ms} ms`);
    if (residentBytes > LIMITS.bytes) throw new Error(`a waiter takes more than ${LIMITS.bytes} bytes`);
  } finally {
    redis.disconnect();
    await db.destroy();
  }
}

type Waking = {
  ids: readonly string[];
  waiters: number;
  /** Commits and announces a change; returns the time of the commit. */
  change: (id: string) => Promise<number>;
  /** Returns the memory of the api after a garbage collection. */
  readHeap: () => Promise<Heap>;
};

/** Runs the long polls. A poll that returned continues with the next free payment, so that the number stays constant. */
async function wake(stack: StackFile, { ids, waiters, change, readHeap }: Waking): Promise<Woken> {
  const headers = { "api-key": stack.live.apiKey, "merchant-id": stack.live.merchantId };
  const ask = createClient(stack.baseUrl, headers, waiters + CHANGES_PER_SECOND);
  const answered = new Map<string, number>();
  let next = 0;
  let over = false;
  const wait = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined && !over; ) {
      const { status, text } = await ask("GET", `/v1/payments/${id}/status?maxPollMs=25000`);
      if (status !== 200) throw new Error(`a long poll returned ${status}: ${text}`);
      // A poll that timed out is repeated, as by a wallet.
      if (!(JSON.parse(text) as { isFinal: boolean }).isFinal) continue;
      answered.set(id, performance.now());
      id = ids[next++];
    }
  };
  const waiting: Promise<void>[] = [];
  const hold = async (count: number) => {
    while (waiting.length < count) {
      waiting.push(...Array.from({ length: Math.min(CONNECTING, count - waiting.length) }, wait));
      await untilHeld(stack, waiting.length);
    }
  };
  const half = Math.floor(waiters / 2);
  await hold(half);
  const atHalf = await readHeap();
  await hold(waiters);
  const atAll = await readHeap();
  const perWaiter = (now: Heap): OfWaiter => ({
    residentBytes: (now.residentBytes - atHalf.residentBytes) / (waiters - half),
    heldBytes: (now.heldBytes - atHalf.heldBytes) / (waiters - half),
  });

  const committed = new Map<string, number>();
  const changes = ids.length - waiters;
  const begun = performance.now();
  const changing: Promise<unknown>[] = [];
  for (let done = 0; done < changes; done += 1) {
    const id = ids[done] as string;
    await pause(Math.max(0, begun + (done * 1_000) / CHANGES_PER_SECOND - performance.now()));
    changing.push(change(id).then((at) => committed.set(id, at)));
  }
  await Promise.all(changing);
  for (const until = Date.now() + 10_000; answered.size < changes && Date.now() < until; ) await pause(20);
  const memory = { ofWaiter: perWaiter(atAll), afterChanges: perWaiter(await readHeap()) };
  over = true;
  // Abort the remaining polls, so that the process has none when the next part begins.
  await runPool(ids.slice(changes), 8, change);
  await Promise.all(waiting);
  const times = [...committed].map(([id, at]) => (answered.get(id) ?? Number.POSITIVE_INFINITY) - at);
  const worst = Math.max(...times);
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99), worst, changed: times.length, ...memory };
}

/** Waits until the api reports that it holds all long polls. */
async function untilHeld(stack: StackFile, waiters: number): Promise<void> {
  const [url] = stack.metricsUrls;
  for (const until = Date.now() + 60_000; Date.now() < until; await pause(10)) {
    const text = await (await fetch(url as string)).text();
    const held = Number(/^pay_long_polls_waiting\{[^}]*\} (\d+)/m.exec(text)?.[1] ?? 0);
    if (held >= waiters) return;
  }
  throw new Error("the api does not hold all long polls after a minute");
}

/** Inserts payments into the table directly: `--http` measures their creation. */
async function insertPayments(db: Pool, stack: StackFile, count: number): Promise<string[]> {
  const { account_id } = await db
    .selectFrom("merchant")
    .select("account_id")
    .where("id", "=", stack.live.merchantId)
    .executeTakeFirstOrThrow();
  const now = new Date();
  const expires = new Date(now.getTime() + 3_600_000);
  return runPool(Array.from({ length: count }), 200, async () => {
    const id = newId("pay", new Date());
    await insertPayment(db, {
      id,
      account_id,
      merchant_id: stack.live.merchantId,
      mode: "live",
      description: null,
      metadata: null,
      unit: "iso4217/USD",
      value: 1n,
      reference_id: null,
      checkout: null,
      created_at: now,
      expires_at: expires,
      due_at: expires,
    });
    return id;
  });
}
