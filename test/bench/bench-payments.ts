import { availableParallelism } from "node:os";
import { Client } from "pg";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { printTable } from "./bench-stats.ts";
import { benchVerify } from "./bench-verification.ts";
import { readCpu, readMachine } from "./cpu-time.ts";
import { readGas, readHeight } from "./gas-used.ts";
import { describeParts, noteBlocks, readTimes } from "./payment-parts.ts";
import { runRaw } from "./raw-evm-transfers.ts";
import { type PaidRun, preparePayments, runPayments } from "./run-payments.ts";
import { type Counters, readCounters, subtract } from "./stack-counters.ts";

/** How long payouts accumulate, milliseconds. */
export const ACCUMULATE_MS = 2_000;

/** The concurrency from which the limits on throughput and RPC calls apply. */
const FULL_LOAD = 128;
const NO_LIMIT_YET = `the limit applies from ${FULL_LOAD} in flight`;

export type PayArgs = {
  payments: number;
  concurrency: number;
  warmup: number;
  /** Seconds between blocks; a block per transaction when undefined. */
  blockTime: number | undefined;
  networksFile: string;
  say: Say;
};

/** Pays payments end to end and prints the cost of each, beside a raw loop in the same run and the limits. */
export async function benchPayments(stack: StackFile, { say, ...args }: PayArgs): Promise<void> {
  await accumulatePayouts(stack);
  say(`payouts of the bench's merchant accumulate for ${ACCUMULATE_MS / 1_000} s`);
  say(`warming up with ${args.warmup} payments`);
  await runPayments(stack, await preparePayments(stack, args.warmup), args.concurrency);
  say(`the raw loop: ${args.payments} relays at ${args.concurrency}`);
  const rawBefore = await runRawLoops(stack, args);
  say(`creating, quoting and signing ${args.payments} payments`);
  const prepared = await preparePayments(stack, args.payments);
  await analyzeTables(stack);
  await waitSettled(stack);
  const [counters, height] = [await readCounters(stack, stack.evm.chain), await readHeight(stack.evm)];
  say(`confirming ${args.payments} payments, ${args.concurrency} in flight`);
  const [cpuBefore, machineBefore] = [readCpu(stack), readMachine()];
  const blocks = noteBlocks(stack);
  const run = await runPayments(stack, prepared, args.concurrency);
  blocks.close();
  const [cpuAfter, machineAfter] = [readCpu(stack), readMachine()];
  say("waiting for the payouts");
  await waitSettled(stack);
  const cost = subtract(await readCounters(stack, stack.evm.chain), counters);
  const chain = await readGas(stack.evm, height, await readHeight(stack.evm));
  say("the raw loop again");
  const rawAfter = await runRawLoops(stack, args);
  say("checking signatures on one core");
  const verified = await benchVerify(stack.postgresUrl, args.networksFile, prepared);

  const seconds = Object.entries(cpuAfter).map(([role, used]) => [role, used - (cpuBefore[role] ?? 0)] as const);
  const machine = { busy: machineAfter.busy - machineBefore.busy, idle: machineAfter.idle - machineBefore.idle };
  const raw: RawLoops = {
    sent: (rawBefore.sent + rawAfter.sent) / 2,
    awaited: rawBefore.awaited && rawAfter.awaited && (rawBefore.awaited + rawAfter.awaited) / 2,
    gas: rawAfter.gas,
  };
  printTable(describeSetting(stack, args));
  const parts = describeParts(await readTimes(stack, run.timings, blocks.times));
  printTable(describeRun({ args, run, cost, chain, raw, verified, parts }));
  printTable(describeCost({ args, cost, seconds, machine }));
  for (const line of run.failed.slice(0, 10)) console.log(`not paid: ${line}`);
  if (run.paid !== args.payments) throw new Error(`${args.payments - run.paid} payments were not paid`);
}

/**
 * Relays per second of the raw loop: `sent` counts requests in flight, `awaited` relays until their block. The second one says
 * nothing with a block per transaction.
 */
type RawLoops = { sent: number; awaited: number | undefined; gas: number };

async function runRawLoops(stack: StackFile, args: PayArgsQuiet): Promise<RawLoops> {
  const { perSecond: sent, gas } = await runRaw(stack, { ...args, inFlight: "requests" });
  if (args.blockTime === undefined) return { sent, awaited: undefined, gas };
  const { perSecond: awaited } = await runRaw(stack, { ...args, inFlight: "relays" });
  return { sent, awaited, gas };
}

export type Line = [string, string];

function describeSetting(stack: StackFile, args: PayArgsQuiet): Line[] {
  const { workers } = stack.processes;
  const lanes = stack.evm.relayers.length;
  return [
    ["payments, in flight at once", `${args.payments}, ${args.concurrency}`],
    ["blocks", args.blockTime === undefined ? "one per transaction" : `every ${args.blockTime} s`],
    ["worker processes, lanes", `${workers.length}, ${lanes}`],
    ["gas limit of a block", "100,000,000 (Anvil's own 30,000,000 raised)"],
    ["payouts", `accumulated for ${ACCUMULATE_MS / 1_000} s`],
  ];
}

type PayArgsQuiet = Omit<PayArgs, "say">;
type Figures = {
  args: PayArgsQuiet;
  run: PaidRun;
  cost: Counters;
  chain: { gas: number; transactions: number };
  raw: RawLoops;
  verified: number;
  parts: readonly Line[];
};

/** Returns a value beside its limit. */
export function withLimit(value: string, holds: boolean, bound: string): string {
  return `${value.padEnd(14)}${bound}${holds ? "" : ": MISSED"}`;
}

/** Returns the results beside their limits. */
function describeRun({ args, run, cost, chain, raw, verified, parts }: Figures): Line[] {
  const leastPerSecond = args.blockTime === undefined ? 300 : 290;
  const rpc = cost.rpcCalls / args.payments;
  const gas = chain.gas / args.payments;
  const most = 0.7 * raw.gas;
  // With few in flight, the latency of a payment limits the rate, not the capacity of the service.
  const full = args.concurrency >= FULL_LOAD;
  return [
    ["paid", withLimit(`${run.paid} of ${args.payments}`, run.paid === args.payments, "all")],
    [
      "paid per second",
      withLimit(
        run.perSecond.toFixed(0),
        !full || run.perSecond >= leastPerSecond,
        full ? `at least ${leastPerSecond}, aiming at 500` : NO_LIMIT_YET,
      ),
    ],
    ["raw loop, relays per second", `${raw.sent.toFixed(0)} (${args.concurrency} requests at a time)`],
    ["ratio to the raw loop", (run.perSecond / raw.sent).toFixed(2)],
    ...describeAwaited(run, raw, args),
    ["confirm to succeeded", `p50 ${run.p50.toFixed(0)} ms, p95 ${run.p95.toFixed(0)} ms`],
    ...parts,
    ["RPC calls per payment", withLimit(rpc.toFixed(2), !full || rpc <= 0.5, full ? "at most 0.5" : NO_LIMIT_YET)],
    ["gas of a single relay", raw.gas.toFixed(0)],
    ["gas per payment, payout included", withLimit(gas.toFixed(0), gas <= most, `at most ${most.toFixed(0)} (70 %)`)],
    ["transactions", `${chain.transactions}, ${(args.payments / chain.transactions).toFixed(1)} payments each`],
    ["signatures checked per second", withLimit(verified.toFixed(0), verified >= 5_000, "at least 5000, one core")],
  ];
}

function describeAwaited({ perSecond }: PaidRun, { awaited }: RawLoops, { concurrency }: PayArgsQuiet): Line[] {
  if (awaited === undefined) return [];
  return [
    ["the same, each until its block", `${awaited.toFixed(0)} (${concurrency} relays at a time)`],
    ["ratio to it", (perSecond / awaited).toFixed(2)],
  ];
}

/** Returns the cost of a payment and the use of the machine. */
export function describeCost({
  args,
  cost,
  seconds,
  machine,
}: {
  args: { payments: number };
  cost: Counters;
  seconds: readonly (readonly [string, number])[];
  machine: { busy: number; idle: number };
}): Line[] {
  const each = (count: number) => (count / args.payments).toFixed(2);
  const ours = seconds.reduce((sum, [, used]) => sum + used, 0);
  const all = machine.busy + machine.idle;
  const share = (part: number) => `${((100 * part) / all).toFixed(0)} %`;
  const perPayment = (ours * 1_000) / args.payments;
  const methods = Object.entries(cost.rpcByMethod).map(([method, count]) => `${method} ${each(count)}`);
  const roles = seconds.map(([role, used]) => `${role} ${((used * 1_000) / args.payments).toFixed(2)}`);
  return [
    ["RPC calls by method", methods.join(", ")],
    ["SQL statements, commits", `${each(cost.sqlStatements)}, ${each(cost.commits)}`],
    ["Redis commands, scripts included", each(cost.redisCommands)],
    ["CPU milliseconds per payment", `${perPayment.toFixed(1)}: ${roles.join(", ")}`],
    [
      `of ${availableParallelism()} cores`,
      `ours ${share(ours)}, other programs ${share(Math.max(0, machine.busy - ours))}, idle ${share(machine.idle)}`,
    ],
    ["capacity of all cores", `${((1_000 * availableParallelism()) / perPayment).toFixed(0)} payments a second`],
  ];
}

/** Sets the accumulation of payouts, as an operator does for a busy merchant (npm run admin -- destinations schedule). */
export async function accumulatePayouts(stack: StackFile): Promise<void> {
  const client = new Client({ connectionString: stack.postgresUrl });
  await client.connect();
  try {
    await client.query("update settlement_destination set accumulation_ms = $1 where merchant_id = $2", [
      ACCUMULATE_MS,
      stack.live.merchantId,
    ]);
  } finally {
    await client.end();
  }
}

/** Does what autovacuum does within a minute: the plans of prepared statements are those for tables of this size. */
export async function analyzeTables(stack: StackFile): Promise<void> {
  const client = new Client({ connectionString: stack.postgresUrl });
  await client.connect();
  await client.query("analyze").finally(() => client.end());
}

/** Waits until every payout has arrived. */
export async function waitSettled(stack: StackFile): Promise<void> {
  const client = new Client({ connectionString: stack.postgresUrl });
  await client.connect();
  try {
    for (const until = Date.now() + 120_000; Date.now() < until; ) {
      const { rows } = await client.query("select count(*)::int as open from settlement where state <> 'paid'");
      if (rows[0].open === 0) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error("payouts are still open after two minutes");
  } finally {
    await client.end();
  }
}
