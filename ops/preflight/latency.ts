import { failure, type Outcome, ok, warning } from "./finding.ts";
import { describeProblem } from "./run-checks.ts";

const CALLS = 20;
/** The calls end after this time even if fewer have been made, milliseconds. */
const BUDGET_MS = 30_000;
/** A 95th percentile above this is slow, milliseconds: an answer to a buyer takes about five calls. */
const SLOW_MS = 500;

const remedy = "Use an endpoint nearer to the workers, or a plan with higher rate limits.";

/** Makes calls one after the other and returns the outcome with their median and 95th percentile. */
export async function checkLatency(ping: () => Promise<unknown>): Promise<Outcome> {
  const [times, errors]: [number[], unknown[]] = [[], []];
  const began = performance.now();
  while (times.length + errors.length < CALLS && performance.now() - began < BUDGET_MS) {
    const sent = performance.now();
    await ping().then(
      () => times.push(performance.now() - sent),
      (error: unknown) => errors.push(error),
    );
  }
  return describeLatency(times, errors);
}

/** Returns the outcome of calls that took these milliseconds, and of calls that failed. */
export function describeLatency(times: readonly number[], errors: readonly unknown[]): Outcome {
  const name = "latency";
  const made = times.length + errors.length;
  const failed = `${errors.length} of ${made} calls failed: ${describeProblem(errors[0])}`;
  if (times.length === 0) return failure(name, failed, remedy);
  const [p50, p95] = [percentile(times, 0.5), percentile(times, 0.95)];
  const measured = `p50 ${Math.round(p50)} ms, p95 ${Math.round(p95)} ms of ${made} calls`;
  if (errors.length > 0) return warning(name, `${measured}; ${failed}`, remedy);
  return p95 > SLOW_MS ? warning(name, measured, remedy) : ok(name, measured);
}

/** Returns the smallest value that at least this share of all values does not exceed (nearest rank). */
function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
}
