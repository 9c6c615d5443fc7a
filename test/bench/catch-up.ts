import { readFileSync } from "node:fs";
import type { Stack } from "../../local/stack.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { withLimit } from "./bench-payments.ts";
import { printTable } from "./bench-stats.ts";
import type { Passed } from "./counting-proxy.ts";
import { type Booked, type DowntimeLedger, waitFor } from "./downtime-ledger.ts";

/** Returns the most memory that a worker has had so far, MiB; 0 without /proc. */
export function readPeakMemory({ processes }: StackFile): number {
  const peaks = processes.workers.map((pid) => {
    try {
      return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return Math.round(Math.max(0, ...peaks) / 1_024);
}

/** The longest time in which a worker may catch up with a day, seconds. */
const MOST_SECONDS = 180;
/** How long a step of the preparation may take, milliseconds. */
export const STEP_MS = 120_000;
/** How long the bench waits for the worker, milliseconds. */
const GIVEN_UP_MS = 1_800_000;
/** How much more memory it may need than before. */
const MOST_MEMORY = 1.5;

/** A downtime that is over, with what was booked and how much memory the worker had used when it stopped. */
export type Downtime = {
  /** A line of the table. */
  setting: string;
  /** The newest final height. */
  final: number;
  startWorkers: () => void;
  before: Stopped;
  /** How many transfers of each kind there are to book. */
  expected: Booked;
  mostCalls: number;
};

type Stopped = { booked: Booked; memory: number };

type Deps = { stack: Stack; ledger: DowntimeLedger; proxy: { read(): Passed } };

/** Starts the worker, waits until it has caught up and prints how. Returns true if it missed nothing and stayed within the limits. */
export async function measureCatchUp({ stack, ledger, proxy }: Deps, downtime: Downtime): Promise<boolean> {
  const count = ({ calls }: Passed) => Object.values(calls).reduce((all, one) => all + one, 0);
  const passedBefore = proxy.read();
  downtime.startWorkers();
  await waitFor("the first call", STEP_MS, async () => count(proxy.read()) > count(passedBefore));
  const began = performance.now();
  await waitFor(`height ${downtime.final} is read`, GIVEN_UP_MS, () => ledger.isReadUpTo(downtime.final));
  const seconds = (performance.now() - began) / 1_000;
  const passedAfter = proxy.read();
  const after = { booked: await ledger.read(), memory: readPeakMemory(stack.file()) };
  return report({ ...downtime, after, passed: [passedBefore, passedAfter], seconds });
}

type CatchUp = Downtime & { after: Stopped; passed: [before: Passed, after: Passed]; seconds: number };

function report({ setting, expected, before, after, passed, seconds, mostCalls }: CatchUp): boolean {
  const kinds = ["payments", "payouts", "deposits"] as const;
  const found = kinds.map((kind) => [kind, after.booked[kind] - before.booked[kind]] as const);
  const total = kinds.reduce((sum, kind) => sum + expected[kind], 0);
  const all = found.reduce((sum, [, count]) => sum + count, 0);
  const isComplete = found.every(([kind, count]) => count === expected[kind]);
  const byMethod = Object.entries(passed[1].calls)
    .map(([method, count]) => [method, count - (passed[0].calls[method] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  const calls = byMethod.reduce((sum, [, count]) => sum + count, 0);
  const isSmall = after.memory <= before.memory * MOST_MEMORY;
  printTable([
    ["without workers", setting],
    [
      "booked",
      withLimit(`${all} of ${total}`, isComplete, found.map(([kind, count]) => `${count} ${kind}`).join(", ")),
    ],
    ["caught up after", withLimit(`${seconds.toFixed(1)} s`, seconds <= MOST_SECONDS, `at most ${MOST_SECONDS} s`)],
    ["calls", withLimit(String(calls), calls <= mostCalls, `at most ${mostCalls}`)],
    ...byMethod.map(([method, count]): [string, string] => [`  ${method}`, String(count)]),
    ["bytes received", String(passed[1].bytes - passed[0].bytes)],
    [
      "peak memory of the worker",
      withLimit(`${after.memory} MiB`, isSmall, `${before.memory} MiB before, at most half more`),
    ],
  ]);
  return isComplete && isSmall && seconds <= MOST_SECONDS && calls <= mostCalls;
}
