import { setTimeout as pause } from "node:timers/promises";
import type { Say } from "../../local/service.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { percentile, printTable } from "./bench-stats.ts";
import { createClient } from "./http-client.ts";
import { describeParts, noteBlocks, type PaymentTimes, readTimes, type Timing } from "./payment-parts.ts";
import { payOne, preparePayments } from "./run-payments.ts";

/** A payment that is confirmed this long before a block, milliseconds, should be in it. */
const BEFORE_BLOCK_MS = 150;
/** The answer should follow the block within this time, milliseconds. */
const AFTER_BLOCK_MS = 150;
const LEAST_SHARE = 0.95;
/** Payments confirmed per second, at random times. */
const PER_SECOND = 5;
/** How long payments are confirmed: this many blocks, and at least this many seconds. */
const BLOCKS = 4;
const LEAST_SECONDS = 20;

/**
 * Confirms payments at random times on a chain with a block every `blockTime` seconds. Prints the share that is in the next
 * block, and how soon after their block the buyers' long polls return. Returns true when both are within the limits.
 */
export async function benchNextBlock(
  stack: StackFile,
  { blockTime, say }: { blockTime: number; say: Say },
): Promise<boolean> {
  const seconds = Math.max(LEAST_SECONDS, BLOCKS * blockTime);
  say(`creating, quoting and signing ${seconds * PER_SECOND} payments`);
  const prepared = await preparePayments(stack, seconds * PER_SECOND);
  const { apiKey, merchantId } = stack.live;
  const ask = createClient(stack.baseUrl, { "api-key": apiKey, "merchant-id": merchantId }, prepared.length);
  const blocks = noteBlocks(stack);
  say(`confirming ${PER_SECOND} payments a second for ${seconds} s, with a block every ${blockTime} s`);
  const paid = await Promise.all(
    prepared.map(async (one): Promise<Timing> => {
      await pause(Math.random() * seconds * 1_000);
      return payOne(ask, one);
    }),
  );
  blocks.close();
  const times = await readTimes(stack, paid, blocks.times);
  const share = shareInNextBlock(times, blocks.times);
  const after = times.flatMap(({ endedAt, mined }) => (mined === undefined ? [] : [endedAt - mined]));
  const [p50, p95] = [percentile(after, 0.5), percentile(after, 0.95)];
  printTable([
    ["blocks", `every ${blockTime} s`],
    ["paid", `${times.length} of ${prepared.length}`],
    [
      `in the next block`,
      `${(100 * share).toFixed(1)} % of those confirmed ${BEFORE_BLOCK_MS} ms before it (at least ${100 * LEAST_SHARE} %)`,
    ],
    ["answer after the block", `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms (p50 at most ${AFTER_BLOCK_MS} ms)`],
    ...describeParts(times),
  ]);
  return times.length === prepared.length && share >= LEAST_SHARE && p50 <= AFTER_BLOCK_MS;
}

/** Returns the share of the payments that are in the first block which was announced `BEFORE_BLOCK_MS` after their confirm. */
function shareInNextBlock(times: readonly PaymentTimes[], blocks: ReadonlyMap<number, number>): number {
  const inOrder = [...blocks].sort(([a], [b]) => a - b);
  const counted = times.flatMap(({ sentAt, block }) => {
    const next = inOrder.find(([, minedAt]) => minedAt >= sentAt + BEFORE_BLOCK_MS);
    return next ? [block <= next[0]] : [];
  });
  return counted.filter(Boolean).length / Math.max(1, counted.length);
}
