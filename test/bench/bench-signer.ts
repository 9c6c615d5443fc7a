import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { waitSettled, withLimit } from "./bench-payments.ts";
import { printTable } from "./bench-stats.ts";
import { readCpu } from "./cpu-time.ts";
import { preparePayments, runPayments } from "./run-payments.ts";

/** Rounds of each stack. They alternate, so that a slower minute of the machine counts for both. */
const ROUNDS = 3;
/** The least throughput with a signer, compared with embedded keys in the same run. */
const LEAST_SHARE = 0.95;

type Args = { payments: number; concurrency: number; warmup: number; say: Say };
/** Payments from the first confirm to the last payout, and the seconds that they took. */
type Total = { count: number; seconds: number };

/**
 * Compares the payments and payouts per second of two stacks in the same run: one with the keys in its workers, one with a
 * signer. Payouts do not accumulate, so every payment is a payout that the signer verifies. Returns false when the signer costs
 * more than its limit.
 */
export async function benchSigner(
  { embedded, signer }: { embedded: StackFile; signer: StackFile },
  { say, ...args }: Args,
): Promise<boolean> {
  const stacks = [embedded, signer];
  const totals = new Map(stacks.map((stack): [StackFile, Total] => [stack, { count: 0, seconds: 0 }]));
  for (const stack of stacks) await runPayments(stack, await preparePayments(stack, args.warmup), args.concurrency);
  for (const stack of stacks) await waitSettled(stack);
  const before = await readSigner(signer);
  for (let round = 0; round < ROUNDS; round += 1)
    for (const stack of round % 2 === 0 ? stacks : stacks.toReversed()) {
      const prepared = await preparePayments(stack, args.payments);
      say(`round ${round + 1} of ${ROUNDS}: ${stack === signer ? "with the signer" : "with embedded keys"}`);
      const begun = performance.now();
      const { failed } = await runPayments(stack, prepared, args.concurrency);
      if (failed.length > 0) throw new Error(`not paid: ${failed[0]}`);
      await waitSettled(stack);
      const total = totals.get(stack) ?? { count: 0, seconds: 0 };
      totals.set(stack, {
        count: total.count + prepared.length,
        seconds: total.seconds + (performance.now() - begun) / 1_000,
      });
    }
  const after = await readSigner(signer);
  const rateOf = (stack: StackFile) => (totals.get(stack)?.count ?? 0) / (totals.get(stack)?.seconds ?? 1);
  const share = rateOf(signer) / rateOf(embedded);
  const [requests, payouts] = [after.requests - before.requests, after.payouts - before.payouts];
  const each = (seconds: number, count: number) => `${((seconds * 1_000) / Math.max(1, count)).toFixed(2)} ms`;
  printTable([
    ["payments, in flight, rounds", `${args.payments}, ${args.concurrency}, ${ROUNDS} of each`],
    ["paid and settled per second, embedded", rateOf(embedded).toFixed(0)],
    ["paid and settled per second, signer", rateOf(signer).toFixed(0)],
    ["signer / embedded", withLimit(share.toFixed(3), share >= LEAST_SHARE, `at least ${LEAST_SHARE}`)],
    [
      "payouts, requests to the signer",
      `${payouts}, ${requests}: ${(payouts / Math.max(1, requests)).toFixed(1)} payouts each`,
    ],
    ["answer of a request", `${each(after.seconds - before.seconds, requests)} on average`],
    ["signer's CPU per payout", each(after.cpu - before.cpu, payouts)],
  ]);
  return share >= LEAST_SHARE;
}

/** Reads the signer's own metrics and its CPU seconds. */
async function readSigner(stack: StackFile) {
  const text = await (await fetch(stack.metricsUrls.at(-1) ?? "")).text();
  const sum = (pattern: RegExp) =>
    text
      .split("\n")
      .filter((line) => pattern.test(line))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  return {
    requests: sum(/^pay_signer_request_seconds_count\{.*path="\/v1\/payouts"/),
    seconds: sum(/^pay_signer_request_seconds_sum\{.*path="\/v1\/payouts"/),
    payouts: sum(/^pay_signer_payouts_total\{/),
    cpu: readCpu(stack)["signer"] ?? 0,
  };
}
