import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { confirm, waitFinal } from "../../local/buyer-client.ts";
import { onEachRedisNode } from "../../local/redis-nodes.ts";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { accumulatePayouts, type Line, waitSettled, withLimit } from "./bench-payments.ts";
import { percentile, printTable } from "./bench-stats.ts";
import { readCpu, readCpuSince } from "./cpu-time.ts";
import { fitGrowth, type Growth } from "./linear-growth.ts";
import { collectHeap, readFamily } from "./process-heap.ts";
import { type Prepared, preparePayments, runPayments } from "./run-payments.ts";

type Args = {
  minutes: number;
  /** Payments per second; half of what the stack can create and pay when undefined. */
  rate: number | undefined;
  say: Say;
};

/** Minutes at the start that do not count, at most a third of the run: caches fill and code is compiled. */
const SETTLING_MINUTES = 10;
/** How often the memory is read, seconds. The payments pause for it, so that none is in flight. */
const SAMPLE_SECONDS = 30;
/** The most that a process may grow, bytes per hour. */
const MOST_GROWTH = 1_000_000;
/** The most that Redis may grow, keys per hour. */
const MOST_KEYS = 100;
/** The longest wait for the end of a payment, milliseconds. */
const GIVEN_UP_MS = 120_000;
/** Payments in flight at full load: with a block every second, so many keep two cores busy. */
const FULL = 512;
/** How much higher p99 may be in the last third of the counted minutes than in the first third. */
const MOST_SLOWER = 1.25;

/**
 * Pays at a steady rate for minutes and measures what grows: the memory of every process, the keys and the memory of Redis, the
 * database, and p99. Returns false when something grows by more than its limit.
 */
export async function benchLong(stack: StackFile, { minutes, say, ...args }: Args): Promise<boolean> {
  await accumulatePayouts(stack);
  const rate = args.rate ?? Math.round((await measureFullLoad(stack, say)) / 2);
  say(`${rate} payments per second for ${minutes} minutes`);
  const samples: Sample[] = [];
  const payments: Paid[] = [];
  const begun = performance.now();
  const elapsed = () => (performance.now() - begun) / 60_000;
  while (elapsed() < minutes) {
    const [paidBefore, cpuBefore] = [payments.length, readCpu(stack)];
    await payFor(stack, { rate, seconds: SAMPLE_SECONDS, minute: elapsed, payments });
    const cpu = perPayment(readCpuSince(stack, cpuBefore), payments.length - paidBefore);
    samples.push({ minute: elapsed(), cpu, ...(await readSample(stack)) });
    const last = payments.slice(-rate * SAMPLE_SECONDS).map(({ ms }) => ms);
    say(`minute ${elapsed().toFixed(1)}: ${payments.length} payments, p99 ${percentile(last, 0.99).toFixed(0)} ms`);
  }
  await waitSettled(stack);
  const from = Math.min(SETTLING_MINUTES, minutes / 3);
  return print({
    payments,
    rate: payments.length / (elapsed() * 60),
    samples: samples.filter(({ minute }) => minute >= from),
    late: payments.filter(({ minute }) => minute >= from),
    from,
  });
}

/** When a payment became final, minutes since the start, and how long it took from its confirmation. */
type Paid = { minute: number; ms: number; failure: string | undefined };

/** Returns how many payments the stack can create, quote and pay in a second: the steady load does all of it, too. */
async function measureFullLoad(stack: StackFile, say: Say): Promise<number> {
  say(`measuring full load: 2000 payments are created and paid, ${FULL} in flight, after as many that warm up`);
  await runPayments(stack, await preparePayments(stack, 2_000), FULL);
  const begun = performance.now();
  const prepared = await preparePayments(stack, 2_000);
  await runPayments(stack, prepared, FULL);
  const seconds = (performance.now() - begun) / 1_000;
  await waitSettled(stack);
  return prepared.length / seconds;
}

/** Returns the processor time of a payment by role, milliseconds. */
function perPayment(seconds: Record<string, number>, payments: number): Record<string, number> {
  return Object.fromEntries(Object.entries(seconds).map(([role, used]) => [role, (used * 1_000) / payments]));
}

type Load = { rate: number; seconds: number; minute: () => number; payments: Paid[] };

/** Confirms payments at the rate, prepares those of the next second meanwhile, and returns when the last one is final. */
async function payFor(stack: StackFile, { rate, seconds, minute, payments }: Load): Promise<void> {
  const paying: Promise<unknown>[] = [];
  let ready = preparePayments(stack, rate);
  for (let left = seconds; left > 0; left -= 1) {
    const prepared = await ready;
    ready = left > 1 ? preparePayments(stack, rate) : Promise.resolve([]);
    const begun = performance.now();
    for (const [index, one] of prepared.entries()) {
      await pause(Math.max(0, begun + (index * 1_000) / rate - performance.now()));
      paying.push(payOnce(stack, one).then((paid) => payments.push({ ...paid, minute: minute() })));
    }
    await pause(Math.max(0, begun + 1_000 - performance.now()));
  }
  await Promise.all(paying);
}

async function payOnce(stack: StackFile, { paymentId, ...signed }: Prepared): Promise<Omit<Paid, "minute">> {
  const shop = { baseUrl: stack.baseUrl, caller: stack.live };
  const begun = performance.now();
  try {
    const confirmed = await confirm(shop, paymentId, signed);
    const { status } = confirmed.isFinal ? confirmed : await waitFinal(shop, paymentId, GIVEN_UP_MS);
    const failure = status === "succeeded" ? undefined : `${paymentId} ended ${status}`;
    return { ms: performance.now() - begun, failure };
  } catch (error) {
    return { ms: performance.now() - begun, failure: `${paymentId}: ${String(error)}` };
  }
}

type Sample = {
  minute: number;
  /** Processor time of a payment, milliseconds. */
  cpu: Record<string, number>;
  /** What each process holds, and its resident memory, bytes. Of Node processes after a garbage collection. */
  held: Record<string, number>;
  resident: Record<string, number>;
  redisKeys: number;
  database: number;
};

async function readSample(stack: StackFile): Promise<Omit<Sample, "minute" | "cpu">> {
  const { api, workers, signer, ...others } = stack.processes;
  const held: Record<string, number> = {};
  const resident: Record<string, number> = {};
  const roles = Object.entries({ api, worker: workers, signer });
  // One after the other, because all of them open their inspector on the same port.
  for (const [role, pids] of roles)
    for (const [index, pid] of pids.entries()) {
      const heap = await collectHeap(pid);
      held[`${role} ${index + 1}`] = heap.heldBytes;
      resident[`${role} ${index + 1}`] = heap.residentBytes;
    }
  for (const name of ["postgres", "redis", "anvil", "solana"] as const) {
    const pid = others[name];
    if (pid !== undefined) resident[name] = readFamily(pid);
  }
  const redis = await readRedis(stack.redisUrl);
  held["Redis, its data"] = redis.bytes;
  return { held, resident, redisKeys: redis.keys, database: await readDatabase(stack.postgresUrl) };
}

async function readRedis(url: string): Promise<{ bytes: number; keys: number }> {
  const nodes = await onEachRedisNode(url, async (node) => {
    const bytes = Number(/used_memory_dataset:(\d+)/.exec(await node.info("memory"))?.[1] ?? 0);
    return { bytes, keys: await node.dbsize() };
  });
  const sum = (of: (one: (typeof nodes)[number]) => number) => nodes.reduce((all, one) => all + of(one), 0);
  return { bytes: sum(({ bytes }) => bytes), keys: sum(({ keys }) => keys) };
}

async function readDatabase(url: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("select pg_database_size(current_database())::float8 as bytes");
    return rows[0].bytes;
  } finally {
    await client.end();
  }
}

type Results = {
  payments: readonly Paid[];
  samples: readonly Sample[];
  late: readonly Paid[];
  from: number;
  rate: number;
};

/** Prints the growth of everything, and returns false when something grew by more than its limit. */
function print({ payments, samples, late, from, rate }: Results): boolean {
  const failed = payments.flatMap(({ failure }) => failure ?? []);
  const perHour = (read: (sample: Sample) => number) =>
    fitGrowth(samples.map((sample) => [sample.minute / 60, read(sample)] as const));
  const names = Object.keys(samples[0]?.held ?? {});
  const held = names.map((name) => ({ name, ...perHour((sample) => sample.held[name] ?? 0) }));
  const keys = perHour(({ redisKeys }) => redisKeys);
  const database = perHour((sample) => sample.database);
  const third = Math.ceil(late.length / 3);
  const p99 = (part: readonly Paid[]) =>
    percentile(
      part.map(({ ms }) => ms),
      0.99,
    );
  const [first, last] = [p99(late.slice(0, third)), p99(late.slice(-third))];
  const thirdOfSamples = Math.ceil(samples.length / 3);
  const cpuOf = (role: string, part: readonly Sample[]) =>
    (part.reduce((sum, { cpu }) => sum + (cpu[role] ?? 0), 0) / part.length).toFixed(2);
  const isSlower = last > first * MOST_SLOWER;
  const lines: Line[] = [
    ["payments, per second", `${payments.length}, ${rate.toFixed(1)}`],
    ["paid", withLimit(`${payments.length - failed.length}`, failed.length === 0, "all")],
    ["counted from minute", `${from.toFixed(1)}, ${samples.length} samples`],
    ...held.map(({ name, slope, error }): Line => {
      const value = `${inMegabytes(slope)} ± ${inMegabytes(2 * error)} MB/h`;
      return [`held by ${name}`, withLimit(value.padEnd(22), !grows({ slope, error }, MOST_GROWTH), "at most 1 MB/h")];
    }),
    ...Object.keys(samples[0]?.resident ?? {}).map((name): Line => {
      const { slope, error } = perHour(({ resident }) => resident[name] ?? 0);
      return [`resident, ${name}`, `${inMegabytes(slope)} ± ${inMegabytes(2 * error)} MB/h`];
    }),
    [
      "keys in Redis",
      withLimit(
        `${keys.slope.toFixed(0)} ± ${(2 * keys.error).toFixed(0)} per hour`.padEnd(22),
        !grows(keys, MOST_KEYS),
        `at most ${MOST_KEYS}, now ${samples.at(-1)?.redisKeys}`,
      ),
    ],
    ...Object.keys(samples[0]?.cpu ?? {}).map((role): Line => {
      const [early, late] = [
        cpuOf(role, samples.slice(0, thirdOfSamples)),
        cpuOf(role, samples.slice(-thirdOfSamples)),
      ];
      return [`processor time, ${role}`, `${early}, ${late} ms per payment in the first and last third`];
    }),
    ["database", `${(database.slope / (rate * 3_600) / 1_000).toFixed(1)} kB per payment`],
    [
      "p99, first and last third",
      withLimit(`${first.toFixed(0)}, ${last.toFixed(0)} ms`.padEnd(22), !isSlower, "at most a quarter more"),
    ],
    [
      "p99 per minute",
      perMinute(payments)
        .map((ms) => ms.toFixed(0))
        .join(" "),
    ],
  ];
  printTable(lines);
  for (const failure of failed.slice(0, 10)) console.log(`not paid: ${failure}`);
  const isWithin =
    failed.length === 0 && !isSlower && !held.some((one) => grows(one, MOST_GROWTH)) && !grows(keys, MOST_KEYS);
  console.log(isWithin ? "\nnothing grows" : "\nsomething grows: see the lines that end with MISSED");
  return isWithin;
}

/** Returns true when the growth is above the limit with certainty: two standard errors, as samples vary. */
const grows = ({ slope, error }: Growth, limit: number) => slope - 2 * error > limit;
const inMegabytes = (bytes: number) => (bytes / 1e6).toFixed(2);

function perMinute(payments: readonly Paid[]): number[] {
  const minutes = Map.groupBy(payments, ({ minute }) => Math.floor(minute));
  return [...minutes.values()].map((paid) =>
    percentile(
      paid.map(({ ms }) => ms),
      0.99,
    ),
  );
}
