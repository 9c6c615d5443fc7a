import { Client } from "pg";
import type { Say } from "../../ops/local/service.ts";
import type { StackFile } from "../../ops/local/stack-file.ts";
import { readCounters, subtract } from "./counters.ts";
import { readCpu } from "./cpu.ts";
import { readGas, readHeight } from "./gas.ts";
import { preparePayments, runPayments } from "./payments.ts";
import { runRaw } from "./raw.ts";
import { printTable } from "./stats.ts";

/** One payout pays what has succeeded within so long, milliseconds. */
const GATHER_MS = 2_000;

/** Pays payments end to end and prints what each cost, beside a raw loop in the same run. */
export async function benchPayments(
  stack: StackFile,
  { say, ...args }: { payments: number; concurrency: number; warmup: number; say: Say },
): Promise<void> {
  await gatherPayouts(stack);
  say(`payouts of the bench's merchant gather for ${GATHER_MS / 1_000} s`);
  say(`warming up with ${args.warmup} payments`);
  await runPayments(stack, await preparePayments(stack, args.warmup), args.concurrency);
  say(`the raw loop: ${args.payments} relays at ${args.concurrency}`);
  const rawBefore = await runRaw(stack, args);
  say(`creating, quoting and signing ${args.payments} payments`);
  const prepared = await preparePayments(stack, args.payments);
  await waitSettled(stack);
  const [counters, height] = [await readCounters(stack), await readHeight(stack)];
  say(`confirming ${args.payments} payments, ${args.concurrency} in flight`);
  const cpuBefore = readCpu(stack);
  const run = await runPayments(stack, prepared, args.concurrency);
  const cpu = Object.entries(readCpu(stack)).map(
    ([role, seconds]) => `${role} ${(((seconds - (cpuBefore[role] ?? 0)) * 1000) / args.payments).toFixed(1)}`,
  );
  say("waiting for the payouts");
  await waitSettled(stack);
  const cost = subtract(await readCounters(stack), counters);
  const { gas, transactions } = await readGas(stack, height, await readHeight(stack));
  say("the raw loop once more");
  const raw = (rawBefore + (await runRaw(stack, args))) / 2;

  const each = (count: number) => (count / args.payments).toFixed(2);
  const lines: [string, string][] = [
    ["paid", `${run.paid} of ${args.payments}`],
    ["paid per second", run.perSecond.toFixed(0)],
    ["raw loop, relays per second", raw.toFixed(0)],
    ["ratio to the raw loop", (run.perSecond / raw).toFixed(2)],
    ["confirm to succeeded, p50", `${run.p50.toFixed(0)} ms`],
    ["confirm to succeeded, p95", `${run.p95.toFixed(0)} ms`],
    ["RPC calls per payment", each(cost.rpcCalls)],
    ["SQL statements per payment", each(cost.sqlStatements)],
    ["commits per payment", each(cost.commits)],
    ["Redis commands, scripts' own too", each(cost.redisCommands)],
    ["gas per payment (with its payout)", (gas / args.payments).toFixed(0)],
    ["gas per transfer", (gas / args.payments / 2).toFixed(0)],
    ["transactions", `${transactions}, ${((args.payments * 2) / transactions).toFixed(1)} transfers each`],
  ];
  printTable(lines);
  console.log(
    `RPC calls by method: ${Object.entries(cost.rpcByMethod)
      .map(([method, count]) => `${method} ${each(count)}`)
      .join(", ")}`,
  );
  console.log(`CPU milliseconds per payment: ${cpu.join(", ")}`);
  for (const line of run.failed.slice(0, 10)) console.log(`not paid: ${line}`);
  if (run.paid !== args.payments) throw new Error(`${args.payments - run.paid} payments were not paid`);
}

/** As an operator sets it for a busy merchant (npm run admin -- destinations gather). */
async function gatherPayouts(stack: StackFile): Promise<void> {
  const client = new Client({ connectionString: stack.postgresUrl });
  await client.connect();
  try {
    await client.query("update settlement_destination set gather_ms = $1 where merchant_id = $2", [
      GATHER_MS,
      stack.live.merchantId,
    ]);
  } finally {
    await client.end();
  }
}

/** Every payout of every payment made so far has arrived. */
async function waitSettled(stack: StackFile): Promise<void> {
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
