import { setTimeout as delay } from "node:timers/promises";
import type { CallPriority } from "./call-priority.ts";

/**
 * Part of the budget that may be saved up for a burst. The rest arrives evenly during a minute, so that no minute has more
 * calls than the budget.
 */
const BURST = 1 / 6;
/** Part of the burst that a call of each priority leaves for the more important ones. */
const LEFT_OVER: Readonly<Record<CallPriority, number>> = { money: 0, verification: 1 / 4, convenience: 1 / 2 };

/** The calls that one process may make to one endpoint. */
export type CallBudget = {
  /** Number of calls that may be made now. */
  remaining(): number;
  /** Returns how long a call of this priority has to wait, milliseconds, about. Counts the calls that wait already. */
  waitMs(priority: CallPriority): number;
  /** Spends one call. Waits until the budget has room for it; calls of one priority wait in order. */
  take(priority: CallPriority): Promise<void>;
};

type Clock = { now: () => number; wait: (ms: number) => Promise<unknown> };

/** Opens the budget of an endpoint, with its burst saved up. */
export function openCallBudget(
  callsPerMinute: number,
  { now, wait }: Clock = { now: () => performance.now(), wait: delay },
): CallBudget {
  const most = callsPerMinute * BURST;
  const perMs = (callsPerMinute - most) / 60_000;
  let saved = most;
  let savedAt = now();
  const waiting: Record<CallPriority, number> = { money: 0, verification: 0, convenience: 0 };
  const newest = new Map<CallPriority, Promise<void>>();

  const remaining = () => {
    const at = now();
    saved = Math.min(most, saved + (at - savedAt) * perMs);
    savedAt = at;
    return saved;
  };
  const waitFor = (calls: number, priority: CallPriority) =>
    Math.max(0, Math.ceil((calls + (most - 1) * LEFT_OVER[priority] - remaining()) / perMs));
  const waitMs = (priority: CallPriority) =>
    waitFor(1 + (priority === "money" ? 0 : waiting[priority]) + waiting.money, priority);
  const spend = async (priority: CallPriority) => {
    for (let ms = waitFor(1, priority); ms > 0; ms = waitFor(1, priority)) await wait(ms);
    waiting[priority] -= 1;
    saved -= 1;
  };
  return {
    remaining,
    waitMs,
    async take(priority) {
      if (waitMs(priority) === 0) {
        saved -= 1;
        return;
      }
      waiting[priority] += 1;
      const spent = (newest.get(priority) ?? Promise.resolve()).then(() => spend(priority));
      newest.set(priority, spent);
      await spent;
    },
  };
}
