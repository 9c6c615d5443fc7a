import { Client } from "pg";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { waitSettled, withLimit } from "./bench-payments.ts";
import { printTable } from "./bench-stats.ts";
import { readCpu, readMachine } from "./cpu-time.ts";
import { readHeight } from "./gas-used.ts";
import { preparePayments, runPayments } from "./run-payments.ts";
import { readCounters, subtract } from "./stack-counters.ts";

/** Rounds of each stack that are not measured: the processes compile their code in them. */
const WARM_ROUNDS = 2;
/**
 * Measured rounds of each stack. They alternate, and each stack is as often the first as the second, so that a slower minute of
 * the machine counts for both.
 */
const ROUNDS = 6;
/** The least throughput with a signer, compared with embedded keys in the same run. */
const LEAST_SHARE = 0.95;

type Args = { payments: number; concurrency: number; say: Say };
/**
 * Payments from the first confirm to the last payout: their seconds, what the stack with its chain used meanwhile, and the share of
 * the machine's cores that everything else used.
 */
type Round = {
  count: number;
  seconds: number;
  rpcCalls: number;
  sqlStatements: number;
  transactions: number;
  cpu: Record<string, number>;
  others: number;
};

/** The bench vacuums before each round: autovacuum would slow down one of a pair. Changes only the tables of the stack's database. */
const WITHOUT_AUTOVACUUM = `do $$ declare name text; begin
  for name in select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
    execute format('alter table %s set (autovacuum_enabled = off, toast.autovacuum_enabled = off)', name);
  end loop;
end $$`;

/**
 * Compares the payments and payouts per second of two stacks in the same run: one with the keys in its workers, one with a
 * signer. Payouts do not accumulate, so every payment is a payout that the signer verifies. Returns false when the signer costs
 * more than its limit in the median pair of rounds, which another program's burst does not decide.
 */
export async function benchSigner(
  { embedded, signer }: { embedded: StackFile; signer: StackFile },
  { say, ...args }: Args,
): Promise<boolean> {
  const stacks = [embedded, signer];
  const rounds = new Map(stacks.map((stack): [StackFile, Round[]] => [stack, []]));
  for (const stack of stacks) await execute(stack, WITHOUT_AUTOVACUUM);
  say(`${WARM_ROUNDS} rounds of each that are not measured`);
  for (let round = 0; round < WARM_ROUNDS; round += 1) for (const stack of stacks) await runRound(stack, args);
  const before = await readSigner(signer);
  for (let round = 1; round <= ROUNDS; round += 1)
    for (const stack of round % 2 === 1 ? stacks : stacks.toReversed()) {
      const measured = await runRound(stack, args);
      rounds.get(stack)?.push(measured);
      const name = stack === signer ? "with the signer" : "with embedded keys";
      say(`round ${round} of ${ROUNDS} ${name}: ${rateOf([measured]).toFixed(0)} per second`);
    }
  const after = await readSigner(signer);
  const [first = [], second = []] = stacks.map((stack) => rounds.get(stack) ?? []);
  const pairs = first.map((round, at) => rateOf(second.slice(at, at + 1)) / rateOf([round]));
  const share = median(pairs);
  const [requests, payouts] = [after.requests - before.requests, after.payouts - before.payouts];
  printTable([
    ["payments, in flight, rounds", `${args.payments}, ${args.concurrency}, ${ROUNDS} of each`],
    ["paid and settled per second, embedded", rateOf(first).toFixed(0)],
    ["paid and settled per second, signer", rateOf(second).toFixed(0)],
    ["signer / embedded, median", withLimit(share.toFixed(3), share >= LEAST_SHARE, `at least ${LEAST_SHARE}`)],
    ["of each pair of rounds", pairs.map((one) => one.toFixed(2)).join(", ")],
    ["of all rounds", (rateOf(second) / rateOf(first)).toFixed(3)],
    ["other programs, each pair", first.map((round, at) => describeOthers(round, second[at])).join(", ")],
    [
      "payouts, requests to the signer",
      `${payouts}, ${requests}: ${(payouts / Math.max(1, requests)).toFixed(1)} payouts each`,
    ],
    ["answer of a request", `${(((after.seconds - before.seconds) * 1_000) / Math.max(1, requests)).toFixed(2)} ms`],
    ["per payment, embedded", describeCost(first)],
    ["per payment, signer", describeCost(second)],
  ]);
  return share >= LEAST_SHARE;
}

async function runRound(stack: StackFile, { payments, concurrency }: Omit<Args, "say">): Promise<Round> {
  const prepared = await preparePayments(stack, payments);
  await execute(stack, "vacuum analyze");
  const [counters, height] = [await readCounters(stack, stack.evm.chain), await readHeight(stack.evm)];
  const [cpu, machine, begun] = [readCpu(stack), readMachine(), performance.now()];
  const { failed } = await runPayments(stack, prepared, concurrency);
  if (failed.length > 0) throw new Error(`not paid: ${failed[0]}`);
  await waitSettled(stack);
  const seconds = (performance.now() - begun) / 1_000;
  const used = Object.entries(readCpu(stack)).map(([role, total]) => [role, total - (cpu[role] ?? 0)] as const);
  const ours = used.reduce((total, [, one]) => total + one, 0);
  const after = readMachine();
  const [busy, idle] = [after.busy - machine.busy, after.idle - machine.idle];
  const { rpcCalls, sqlStatements } = subtract(await readCounters(stack, stack.evm.chain), counters);
  const others = Math.max(0, busy - ours) / (busy + idle);
  // A block has one transaction.
  const transactions = (await readHeight(stack.evm)) - height;
  const count = prepared.length;
  return { count, seconds, rpcCalls, sqlStatements, transactions, cpu: Object.fromEntries(used), others };
}

async function execute({ postgresUrl }: StackFile, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

const sum = (rounds: readonly Round[], of: (round: Round) => number) =>
  rounds.reduce((total, round) => total + of(round), 0);

const rateOf = (rounds: readonly Round[]) => sum(rounds, ({ count }) => count) / sum(rounds, ({ seconds }) => seconds);

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return ((sorted[Math.floor((sorted.length - 1) / 2)] ?? 0) + (sorted[Math.ceil((sorted.length - 1) / 2)] ?? 0)) / 2;
}

const describeOthers = (first: Round, second: Round | undefined) =>
  `${[first, second].map((round) => ((round?.others ?? 0) * 100).toFixed(0)).join("/")} %`;

/** Returns RPC calls, SQL statements and milliseconds of each process for a payment with its payout. */
function describeCost(rounds: readonly Round[]): string {
  const count = sum(rounds, (round) => round.count);
  const roles = Object.keys(rounds[0]?.cpu ?? {}).map((role): [string, number] => [
    role,
    (sum(rounds, ({ cpu }) => cpu[role] ?? 0) * 1_000) / count,
  ]);
  const all = roles.reduce((total, [, ms]) => total + ms, 0);
  const each = (of: (round: Round) => number) => (sum(rounds, of) / count).toFixed(2);
  return [
    `${each(({ rpcCalls }) => rpcCalls)} RPC calls`,
    `${each(({ sqlStatements }) => sqlStatements)} statements`,
    `${each(({ transactions }) => transactions)} transactions`,
    `CPU ${all.toFixed(2)} ms: ${roles.map(([role, ms]) => `${role} ${ms.toFixed(2)}`).join(", ")}`,
  ].join(", ");
}

/** Reads the signer's own metrics. */
async function readSigner(stack: StackFile) {
  const text = await (await fetch(stack.metricsUrls.at(-1) ?? "")).text();
  const total = (pattern: RegExp) =>
    text
      .split("\n")
      .filter((line) => pattern.test(line))
      .reduce((so, line) => so + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  return {
    requests: total(/^pay_signer_request_seconds_count\{.*path="\/v1\/payouts"/),
    seconds: total(/^pay_signer_request_seconds_sum\{.*path="\/v1\/payouts"/),
    payouts: total(/^pay_signer_payouts_total\{/),
  };
}
