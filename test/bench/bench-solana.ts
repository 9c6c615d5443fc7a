import { base58 } from "@scure/base";
import { openKeypair, verifySignature } from "../../chains/solana/ed25519-keys.ts";
import { createPayment, listOptions, type Shop, signOption } from "../../local/buyer-client.ts";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import {
  ACCUMULATE_MS,
  accumulatePayouts,
  analyzeTables,
  describeCost,
  type Line,
  waitSettled,
  withLimit,
} from "./bench-payments.ts";
import { printTable, runPool } from "./bench-stats.ts";
import { readCpu, readMachine } from "./cpu-time.ts";
import { runRawSolana } from "./raw-solana-transfers.ts";
import { type PaidRun, type Prepared, runPayments } from "./run-payments.ts";
import { readCounters, subtract } from "./stack-counters.ts";

/** The limits that the service must meet. */
const LEAST_PER_SECOND = 150;
const MOST_CALLS = 1.2;
/** The concurrency from which the limits on throughput and RPC calls apply. */
const FULL_LOAD = 128;
/** $0.01, so that the buyers' funds last for a long bench. */
const CENTS = "1";

type Args = { payments: number; concurrency: number; warmup: number };

/** Pays payments on Solana end to end and prints the cost of each, beside a raw send loop in the same run. */
export async function benchSolana(stack: StackFile, { say, ...args }: Args & { say: Say }): Promise<void> {
  await accumulatePayouts(stack);
  say(`payouts of the bench's merchant accumulate for ${ACCUMULATE_MS / 1_000} s`);
  say(`warming up with ${args.warmup} payments`);
  await runPayments(stack, await prepareSolanaPayments(stack, args.warmup), args.concurrency);
  say(`the raw loop: ${args.payments} transfers at ${args.concurrency}`);
  const rawBefore = await runRawLoops(stack, args);
  say(`creating, quoting and signing ${args.payments} payments`);
  const prepared = await prepareSolanaPayments(stack, args.payments);
  await analyzeTables(stack);
  const counters = await readCounters(stack, stack.solana.chain);
  say(`confirming ${args.payments} payments, ${args.concurrency} in flight`);
  const [cpuBefore, machineBefore] = [readCpu(stack), readMachine()];
  const run = await runPayments(stack, prepared, args.concurrency);
  const [cpuAfter, machineAfter] = [readCpu(stack), readMachine()];
  say("waiting for the payouts");
  await waitSettled(stack);
  const cost = subtract(await readCounters(stack, stack.solana.chain), counters);
  say("the raw loop again");
  const rawAfter = await runRawLoops(stack, args);
  say("checking signatures on one core");
  const seconds = Object.entries(cpuAfter).map(([role, used]) => [role, used - (cpuBefore[role] ?? 0)] as const);
  const machine = { busy: machineAfter.busy - machineBefore.busy, idle: machineAfter.idle - machineBefore.idle };
  const raw = {
    sent: (rawBefore.sent + rawAfter.sent) / 2,
    awaited: (rawBefore.awaited + rawAfter.awaited) / 2,
  };
  printTable(describeSetting(stack, args));
  printTable(describeRun({ args, run, raw, rpcByMethod: cost.rpcByMethod, verified: countVerified(stack) }));
  printTable(describeCost({ args, cost, seconds, machine }));
  for (const line of run.failed.slice(0, 10)) console.log(`not paid: ${line}`);
  if (run.paid !== args.payments) throw new Error(`${args.payments - run.paid} payments were not paid`);
}

/** Transfers per second of the raw loop: `sent` counts requests in flight, `awaited` transfers until they are confirmed. */
type RawLoops = { sent: number; awaited: number };

async function runRawLoops(stack: StackFile, args: Args): Promise<RawLoops> {
  const { perSecond: sent } = await runRawSolana(stack, { ...args, inFlight: "requests" });
  const { perSecond: awaited } = await runRawSolana(stack, { ...args, inFlight: "transfers" });
  return { sent, awaited };
}

/** Creates and quotes all payments before it fetches and signs their actions: a blockhash expires soon. */
export async function prepareSolanaPayments(stack: StackFile, count: number): Promise<Prepared[]> {
  const shop: Shop = { baseUrl: stack.baseUrl, caller: stack.live };
  const expiresAt = new Date(Date.now() + 3_600_000);
  const quoted = await runPool(Array.from({ length: count }), 16, async (_, index) => {
    const buyer = stack.solana.buyers[index % stack.solana.buyers.length];
    if (!buyer) throw new Error("the stack has too few buyers");
    const paymentId = await createPayment(shop, { referenceId: `bench-${index}`, cents: CENTS, expiresAt });
    const [option] = await listOptions(shop, paymentId, [`${stack.solana.chain}:${buyer.address}`]);
    if (!option) throw new Error(`payment ${paymentId} has no option for ${buyer.address}`);
    return { paymentId, option, buyer };
  });
  return runPool(quoted, 16, async ({ paymentId, option, buyer }) => {
    const results = await signOption(shop, paymentId, option, buyer);
    return { paymentId, optionId: option.id, results };
  });
}

function describeSetting(stack: StackFile, args: Args): Line[] {
  return [
    ["payments, in flight at once", `${args.payments}, ${args.concurrency}`],
    ["worker processes", String(stack.processes.workers.length)],
    ["finality", "confirmed"],
    ["payouts", `accumulated for ${ACCUMULATE_MS / 1_000} s`],
  ];
}

type Figures = { args: Args; run: PaidRun; raw: RawLoops; rpcByMethod: Record<string, number>; verified: number };

function describeRun({ args, run, raw, rpcByMethod, verified }: Figures): Line[] {
  const calls = Object.entries(rpcByMethod).map(([method, count]) => ({ method, each: count / args.payments }));
  const all = calls.reduce((sum, { each }) => sum + each, 0);
  const full = args.concurrency >= FULL_LOAD;
  const noLimitYet = `the limit applies from ${FULL_LOAD} in flight`;
  const fast = !full || run.perSecond >= LEAST_PER_SECOND;
  return [
    ["paid", withLimit(`${run.paid} of ${args.payments}`, run.paid === args.payments, "all")],
    ["paid per second", withLimit(run.perSecond.toFixed(0), fast, full ? `at least ${LEAST_PER_SECOND}` : noLimitYet)],
    ["raw loop, transfers per second", `${raw.sent.toFixed(0)} with so many requests in flight`],
    ["of them with so many in flight", `${raw.awaited.toFixed(0)} until each is confirmed`],
    [
      "ratio to the raw loop",
      `${(run.perSecond / raw.sent).toFixed(2)} and ${(run.perSecond / raw.awaited).toFixed(2)}`,
    ],
    ["confirm to succeeded", `p50 ${run.p50.toFixed(0)} ms, p95 ${run.p95.toFixed(0)} ms`],
    [
      "RPC calls per payment",
      withLimit(all.toFixed(2), !full || all <= MOST_CALLS, full ? `at most ${MOST_CALLS}` : noLimitYet),
    ],
    ["RPC calls by method", calls.map(({ method, each }) => `${method} ${each.toFixed(2)}`).join(", ")],
    ["signatures checked per second", `${verified.toFixed(0)}, one core`],
  ];
}

/** Returns the number of ed25519 signatures that one core verifies in a second. */
function countVerified(stack: StackFile): number {
  const [buyer] = stack.solana.buyers;
  if (!buyer) throw new Error("the stack has too few buyers");
  const message = Buffer.alloc(400, 7);
  const signature = openKeypair(base58.decode(buyer.secretKey)).sign(message);
  const begun = performance.now();
  let checked = 0;
  for (; performance.now() - begun < 1_000; checked += 1)
    if (!verifySignature(buyer.address, message, signature)) throw new Error("a valid signature was refused");
  return checked;
}
