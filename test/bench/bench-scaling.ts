import { availableParallelism } from "node:os";
import type { Say } from "../../local/service.ts";
import type { Stack } from "../../local/stack.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { accumulatePayouts, waitSettled } from "./bench-payments.ts";
import { readCpu, readMachine } from "./cpu-time.ts";
import { type PaidRun, preparePayments, runPayments } from "./run-payments.ts";
import { readCounters, subtract } from "./stack-counters.ts";

/** The processes and lanes of one measurement. */
export type FleetSize = { workers: number; lanes: number };

/** What one measurement of a fleet found. Shares are of all cores. */
type Measured = FleetSize & {
  run: PaidRun;
  perBatch: number;
  cpuPerPayment: number;
  ours: number;
  others: number;
  idle: number;
};

/** Workers with many lanes, and lanes with many workers. */
const FLEET_SIZES: readonly FleetSize[] = [
  ...[1, 2, 4, 8].map((workers) => ({ workers, lanes: 8 })),
  ...[1, 2, 4].map((lanes) => ({ workers: 4, lanes })),
];

type Args = { payments: number; concurrency: number; delayMs: number; say: Say };

/**
 * Pays the same number of payments with fleets of several sizes, with every RPC call delayed by `delayMs`, and prints a table in
 * Markdown. `start` starts a stack of one size whose workers reach the chain through the delay.
 */
export async function benchScaling(
  start: (size: FleetSize) => Promise<Stack>,
  { payments, concurrency, delayMs, say }: Args,
): Promise<void> {
  const results: Measured[] = [];
  for (const size of FLEET_SIZES) {
    const stack = await start(size);
    say(`${size.workers} workers, ${size.lanes} lanes: ${payments} payments, ${concurrency} in flight`);
    results.push(await measure(stack.file(), size, { payments, concurrency }).finally(stack.stop));
  }
  console.log(
    `\n${payments} payments, ${concurrency} in flight, RPC calls delayed by ${delayMs} ms, ${availableParallelism()} cores\n`,
  );
  for (const line of describe(results)) console.log(line);
}

async function measure(
  stack: StackFile,
  size: FleetSize,
  { payments, concurrency }: { payments: number; concurrency: number },
): Promise<Measured> {
  await accumulatePayouts(stack);
  await runPayments(stack, await preparePayments(stack, Math.ceil(payments / 5)), concurrency);
  const prepared = await preparePayments(stack, payments);
  await waitSettled(stack);
  const counters = await readCounters(stack, stack.evm.chain);
  const [cpu, machine] = [readCpu(stack), readMachine()];
  const run = await runPayments(stack, prepared, concurrency);
  const [cpuAfter, machineAfter] = [readCpu(stack), readMachine()];
  if (run.failed.length > 0) throw new Error(`not paid: ${run.failed[0]}`);
  const sent =
    subtract(await readCounters(stack, stack.evm.chain), counters).rpcByMethod["eth_sendRawTransaction"] ?? 1;
  const [busy, idle] = [machineAfter.busy - machine.busy, machineAfter.idle - machine.idle];
  const ours = Object.entries(cpuAfter).reduce((sum, [role, used]) => sum + used - (cpu[role] ?? 0), 0);
  const all = busy + idle;
  return {
    ...size,
    run,
    perBatch: payments / sent,
    cpuPerPayment: (ours * 1_000) / payments,
    ours: ours / all,
    others: Math.max(0, busy - ours) / all,
    idle: idle / all,
  };
}

/** Returns the table. */
function describe(results: readonly Measured[]): string[] {
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  const rows = results.map(({ workers, lanes, run, perBatch, cpuPerPayment, ours, others, idle }) => [
    workers,
    lanes,
    run.perSecond.toFixed(0),
    `${run.p50.toFixed(0)} / ${run.p95.toFixed(0)} ms`,
    perBatch.toFixed(1),
    `${cpuPerPayment.toFixed(1)} ms`,
    `${percent(ours)}, ${percent(others)}, ${percent(idle)}`,
  ]);
  const head = [
    "workers",
    "lanes",
    "paid/s",
    "p50 / p95",
    "payments per transaction",
    "CPU per payment",
    "cores: ours, others, idle",
  ];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
}
