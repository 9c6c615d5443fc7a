import type { Worker } from "bullmq";
import type { Logger } from "pino";
import type { Clock } from "../db/clock.ts";
import type { Metrics } from "../runtime/metrics.ts";

type Deps = { clock: Pick<Clock, "skewMs">; isTrusted: () => boolean; metrics: Metrics; log: Logger };

/**
 * Pauses the workers of this process while its clock differs too much from that of Postgres. Call `update` after each
 * measurement of the clock, and `guard` once, when the workers run: until then there is nothing to pause, and workers that begin
 * while the clock differs are paused at once.
 */
export function createClockGate({ clock, isTrusted, metrics, log }: Deps): {
  update: () => void;
  guard: (workers: readonly Worker[]) => void;
} {
  let guarded: readonly Worker[] = [];
  let trusted = true;
  return {
    update() {
      const skewMs = clock.skewMs() ?? 0;
      metrics.clockSkew.set({ against: "postgres" }, skewMs / 1_000);
      if (trusted === isTrusted()) return;
      trusted = !trusted;
      const facts = { aheadMs: Math.round(skewMs) };
      if (trusted) log.info(facts, "this machine's clock agrees with that of Postgres again");
      else
        log.error(
          facts,
          "this machine's clock differs too much from that of Postgres: no job is taken until they agree",
        );
      for (const worker of guarded) trusted ? worker.resume() : void worker.pause(true);
    },
    guard(workers) {
      guarded = workers;
      if (!trusted) for (const worker of guarded) void worker.pause(true);
    },
  };
}
