import type { Methods } from "./chain-methods.ts";
import { numberAt, type Params, textsAt } from "./rpc-params.ts";
import type { Submit } from "./send-transaction.ts";
import { invalidParams } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

/** How a call is delayed or failed before it reaches its method. */
export type Disturbance = { waitMs: number; fails: "error" | "hang" | undefined };

export type TestControls = {
  methods: Methods;
  /** Returns the disturbance of one call; called once for each call. */
  disturbance(method: string): Disturbance;
  close(): void;
};

/** Returns the methods named `local_*`, with which tests control time and inject errors. */
export function openTestControls(ledger: Ledger, submit: Submit, slotMs: number): TestControls {
  const clock = openClock(() => ledger.advance(1), slotMs);
  const delays = new Map<string, number>();
  const failures = new Map<string, { left: number; how: "error" | "hang" }>();
  return {
    disturbance(method) {
      const waitMs = delays.get(method) ?? delays.get("*") ?? 0;
      const failure = failures.get(method) ?? failures.get("*");
      if (failure === undefined || failure.left === 0) return { waitMs, fails: undefined };
      failure.left -= 1;
      return { waitMs, fails: failure.how };
    },
    close: clock.pause,
    methods: {
      local_setSlotMs: done((params) => clock.set(numberAt(params, 0))),
      local_pause: done(clock.pause),
      local_resume: done(clock.resume),
      local_jump(params) {
        ledger.advance(numberAt(params, 0));
        return ledger.slots.tip().slot;
      },
      local_rollback: (params) => ledger.rollback(numberAt(params, 0)).map(({ signature }) => signature),
      local_drop: done((params) => submit.drop(params[0] === "all" ? Number.POSITIVE_INFINITY : numberAt(params, 0))),
      local_hold: done((params) => submit.hold(numberAt(params, 0))),
      local_delay: done((params) => {
        for (const method of textsAt(params, 0, 100)) delays.set(method, numberAt(params, 1));
      }),
      local_fail: done((params) => {
        const how = params[2];
        if (how !== "error" && how !== "hang") throw invalidParams("local_fail: how is error or hang");
        for (const method of textsAt(params, 0, 100)) failures.set(method, { left: numberAt(params, 1), how });
      }),
    },
  };
}

/** Returns a method that returns null. */
const done =
  (run: (params: Params) => void) =>
  (params: Params): null => {
    run(params);
    return null;
  };

function openClock(tick: () => void, slotMs: number) {
  let everyMs = slotMs;
  let timer: NodeJS.Timeout | undefined;
  const pause = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const resume = (): void => {
    pause();
    timer = setInterval(tick, everyMs);
  };
  resume();
  return {
    pause,
    resume,
    set(ms: number) {
      everyMs = Math.max(1, ms);
      if (timer !== undefined) resume();
    },
  };
}
