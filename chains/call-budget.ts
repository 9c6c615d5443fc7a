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
  /**
   * Returns about how many milliseconds calls (one when unset) of this priority have to wait, behind those that wait already.
   * Never 0 for more calls than a burst has.
   */
  waitMs(priority: CallPriority, calls?: number): number;
  /**
   * Spends calls, one when unset, as soon as the budget has room for all of them. Waits forever for more calls than a burst
   * has. Calls of one priority are served in order.
   */
  take(priority: CallPriority, calls?: number): Promise<void>;
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
  const waitMs = (priority: CallPriority, calls = 1) =>
    waitFor(calls + (priority === "money" ? 0 : waiting[priority]) + waiting.money, priority);
  const spend = async (priority: CallPriority, calls: number) => {
    // Without the money calls that wait, a queue of less important single calls would spend what a batch saves up for.
    const left = () => waitFor(calls + (priority === "money" ? 0 : waiting.money), priority);
    for (let ms = left(); ms > 0; ms = left()) await wait(ms);
    waiting[priority] -= calls;
    saved -= calls;
  };
  return {
    remaining,
    waitMs,
    async take(priority, calls = 1) {
      if (waitMs(priority, calls) === 0) {
        saved -= calls;
        return;
      }
      waiting[priority] += calls;
      const spent = (newest.get(priority) ?? Promise.resolve()).then(() => spend(priority, calls));
      newest.set(priority, spent);
      await spent;
    },
  };
}
