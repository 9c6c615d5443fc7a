import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import type { Hex } from "viem";
import type { StackFile } from "../../local/stack-file.ts";
import { withLimit } from "./bench-payments.ts";
import { printTable } from "./bench-stats.ts";
import type { Passed } from "./counting-proxy.ts";

/** What the ledger has booked: payments that succeeded, settlements that were paid, and deposits without a payment. */
export type Booked = { payments: number; payouts: number; deposits: number };

export type DowntimeLedger = Awaited<ReturnType<typeof openDowntimeLedger>>;

/** Opens the database of a stack, and reads what the bench waits for on one chain. */
export async function openDowntimeLedger({ postgresUrl }: StackFile, chain: string) {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  const count = async (text: string, values: unknown[] = [chain]): Promise<number> =>
    Number((await client.query(`select count(*) from ${text}`, values)).rows[0].count);
  return {
    close: () => client.end(),
    /** Returns true when the watcher has read and confirmed everything up to a height. */
    isReadUpTo: async (height: number) =>
      (await count("chain_cursor where chain = $1 and number >= $2 and final_number >= $2", [chain, height])) > 0,
    /** Returns how many transfers of a purpose are in broadcast transactions that no block includes. */
    countSent: (purpose: "payment" | "settlement") =>
      count(
        `transfer t join transaction x on x.lane_id = t.lane_id and x.nonce = t.lane_nonce
         where t.chain = $1 and t.purpose = $2 and t.state = 'assigned' and x.state = 'accepted'`,
        [chain, purpose],
      ),
    /** Returns the broadcast transactions that no block includes, in the order of their nonces. */
    listSent: async (): Promise<{ hash: Hex; bytes: Buffer }[]> =>
      (
        await client.query(
          "select hash, bytes from transaction where chain = $1 and state = 'accepted' order by nonce",
          [chain],
        )
      ).rows,
    read: async (): Promise<Booked> => ({
      payments: await count("payment where state = 'succeeded'", []),
      payouts: await count("settlement where state = 'paid'", []),
      deposits: await count("observation where chain = $1 and transfer_id is null and booked"),
    }),
  };
}

/** Waits for a condition, for a limited time. */
export async function waitFor(what: string, withinMs: number, holds: () => Promise<boolean>): Promise<void> {
  for (const until = Date.now() + withinMs; Date.now() < until; await pause(50)) if (await holds()) return;
  throw new Error(`not within ${withinMs / 1_000} s: ${what}`);
}

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
/** How much more memory it may need than before. */
const MOST_MEMORY = 1.5;

export type CatchUp = {
  /** What the downtime was, as a line of the table. */
  setting: string;
  /** How many transfers of each kind it had. */
  expected: Booked;
  booked: [before: Booked, after: Booked];
  passed: [before: Passed, after: Passed];
  seconds: number;
  mostCalls: number;
  memory: [before: number, after: number];
};

/** Prints how a worker caught up. Returns true if it missed nothing and stayed within the limits. */
export function reportCatchUp({ setting, expected, booked, passed, seconds, mostCalls, memory }: CatchUp): boolean {
  const kinds = ["payments", "payouts", "deposits"] as const;
  const found = kinds.map((kind) => [kind, booked[1][kind] - booked[0][kind]] as const);
  const total = kinds.reduce((sum, kind) => sum + expected[kind], 0);
  const all = found.reduce((sum, [, count]) => sum + count, 0);
  const isComplete = found.every(([kind, count]) => count === expected[kind]);
  const byMethod = Object.entries(passed[1].calls)
    .map(([method, count]) => [method, count - (passed[0].calls[method] ?? 0)] as const)
    .filter(([, count]) => count > 0);
  const calls = byMethod.reduce((sum, [, count]) => sum + count, 0);
  const isSmall = memory[1] <= memory[0] * MOST_MEMORY;
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
    ["peak memory of the worker", withLimit(`${memory[1]} MiB`, isSmall, `${memory[0]} MiB before, at most half more`)],
  ]);
  return isComplete && isSmall && seconds <= MOST_SECONDS && calls <= mostCalls;
}
