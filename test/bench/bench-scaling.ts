import { availableParallelism } from "node:os";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { accumulatePayouts, waitSettled } from "./bench-payments.ts";
import { percentile } from "./bench-stats.ts";
import { readCpu, readMachine } from "./cpu-time.ts";
import { type PaidRun, preparePayments, runPayments } from "./run-payments.ts";
import type { FleetSize, ScaledFleet } from "./scaled-fleet.ts";
import { readCounters, subtract } from "./stack-counters.ts";

/** What one measurement of a fleet found. Shares are of all cores. */
type Measured = {
  perSecond: number;
  p50: number;
  p95: number;
  perBatch: number;
  cpuPerPayment: number;
  roles: Record<string, number>;
  ours: number;
  others: number;
  idle: number;
};

type Args = { sizes: readonly FleetSize[]; payments: number; concurrency: number; delayMs: number; say: Say };

/**
 * Pays the same number of payments with fleets of several sizes, with every RPC call delayed by `delayMs`, and prints a table in
 * Markdown. `start` starts a fleet of one size whose workers reach the chains through the delay.
 */
export async function benchScaling(
  start: (size: FleetSize) => Promise<ScaledFleet>,
  { sizes, payments, concurrency, delayMs, say }: Args,
): Promise<void> {
  const rows: (string | number)[][] = [];
  for (const size of sizes) {
    const fleet = await start(size);
    const { workers, lanes, chains, perTransaction } = size;
    say(`${workers} workers, ${lanes} lanes, ${chains} chains: ${payments} payments, ${concurrency} in flight`);
    const measured = await measure(fleet.chains, { payments, concurrency }).finally(fleet.stop);
    const of = [workers, lanes, chains, perTransaction];
    rows.push([...of, ...describe(measured)]);
    say(rows.at(-1)?.join(" | ") ?? "");
  }
  console.log(
    `\n${payments} payments, ${concurrency} in flight, RPC calls delayed by ${delayMs} ms, ${availableParallelism()} cores\n`,
  );
  for (const cells of [head, head.map(() => "---"), ...rows]) console.log(`| ${cells.join(" | ")} |`);
}

/** Pays payments on all chains at once, the same number on each. `stacks` has the file of the stack once for each chain. */
async function measure(
  stacks: readonly StackFile[],
  { payments, concurrency }: { payments: number; concurrency: number },
): Promise<Measured> {
  const [stack] = stacks;
  if (!stack) throw new Error("no chain");
  const each = Math.ceil(payments / stacks.length);
  const inFlight = Math.ceil(concurrency / stacks.length);
  await accumulatePayouts(stack);
  const onAll = <T>(work: (one: StackFile, index: number) => Promise<T>) => Promise.all(stacks.map(work));
  await onAll(async (one) => runPayments(one, await preparePayments(one, Math.ceil(each / 5)), inFlight));
  const prepared = await onAll((one) => preparePayments(one, each));
  await waitSettled(stack);
  const countAll = () => onAll((one) => readCounters(one, one.evm.chain));
  const counters = await countAll();
  const [cpu, machine, begun] = [readCpu(stack), readMachine(), performance.now()];
  const runs = await onAll((one, index) => runPayments(one, prepared[index] ?? [], inFlight));
  const seconds = (performance.now() - begun) / 1_000;
  const [cpuAfter, machineAfter] = [readCpu(stack), readMachine()];
  const [failed] = runs.flatMap((run) => run.failed);
  if (failed !== undefined) throw new Error(`not paid: ${failed}`);
  const sentOn = (after: (typeof counters)[number], index: number) =>
    subtract(after, counters[index] ?? after).rpcByMethod["eth_sendRawTransaction"] ?? 0;
  const sent = (await countAll()).map(sentOn).reduce((sum, count) => sum + count, 0);
  const [busy, idle] = [machineAfter.busy - machine.busy, machineAfter.idle - machine.idle];
  const roles = Object.fromEntries(Object.entries(cpuAfter).map(([role, used]) => [role, used - (cpu[role] ?? 0)]));
  const ours = Object.values(roles).reduce((sum, used) => sum + used, 0);
  const paid = each * stacks.length;
  return {
    perSecond: paid / seconds,
    ...latenciesOf(runs),
    perBatch: paid / sent,
    cpuPerPayment: (ours * 1_000) / paid,
    roles: Object.fromEntries(Object.entries(roles).map(([role, used]) => [role, (used * 1_000) / paid])),
    ours: ours / (busy + idle),
    others: Math.max(0, busy - ours) / (busy + idle),
    idle: idle / (busy + idle),
  };
}

function latenciesOf(runs: readonly PaidRun[]): { p50: number; p95: number } {
  const times = runs.flatMap(({ timings }) => timings.map(({ sentAt, endedAt }) => endedAt - sentAt));
  return { p50: percentile(times, 0.5), p95: percentile(times, 0.95) };
}

const head = [
  "workers",
  "lanes of each chain",
  "chains",
  "payments a transaction holds",
  "paid/s",
  "p50 / p95",
  "payments per transaction",
  "CPU per payment (workers, Postgres)",
  "cores: ours, others, idle",
];

function describe({ perSecond, p50, p95, perBatch, cpuPerPayment, roles, ours, others, idle }: Measured): string[] {
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const ms = (role: string) => (roles[role] ?? 0).toFixed(1);
  return [
    perSecond.toFixed(0),
    `${p50.toFixed(0)} / ${p95.toFixed(0)} ms`,
    perBatch.toFixed(1),
    `${cpuPerPayment.toFixed(1)} ms (${ms("workers")}, ${ms("postgres")})`,
    `${percent(ours)}, ${percent(others)}, ${percent(idle)}`,
  ];
}
