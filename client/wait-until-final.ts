import type { GetPaymentStatusResponse } from "./api-types.ts";
import { WaitTimeoutError } from "./http/errors.ts";
import { isTransient } from "./http/retries.ts";
import { limitTime, requireTimeout } from "./http/time-limit.ts";
import type { CallOptions } from "./http/transport.ts";
import { wait } from "./http/wait.ts";

export type WaitOptions = Pick<CallOptions, "signal"> & {
  /**
   * How long to wait, milliseconds; until the payment is final when left out. A payment usually ends soon after its deadline, and
   * later while a chain cannot be read.
   */
  timeoutMs?: number;
  /** Is called with each status that differs from the one before. */
  onStatus?: (status: GetPaymentStatusResponse) => void;
};

/** How long the service may hold each poll, milliseconds; it answers as soon as the status changes. */
const HOLD_MS = 20_000;
/** Time between polls of a service that names none or cannot be reached, milliseconds. */
const POLL_MS = 1000;
/** The shortest and the longest time between polls that a service may ask for, milliseconds. */
const [MIN_POLL_MS, MAX_POLL_MS] = [100, 60_000];

/**
 * Polls a payment until it is final, and returns its last status. Outages and limits of the service only delay it. Rejects with a
 * `WaitTimeoutError` when the time has passed, with the signal's reason, and with any error that a repetition cannot mend.
 * @param poll returns the status, at the latest when it has been held for the given time
 */
export async function waitUntilFinal(
  poll: (maxPollMs: number, options: CallOptions) => Promise<GetPaymentStatusResponse>,
  { timeoutMs = Number.POSITIVE_INFINITY, signal, onStatus }: WaitOptions,
): Promise<GetPaymentStatusResponse> {
  requireTimeout(timeoutMs);
  const limit = limitTime(timeoutMs, signal);
  try {
    return await pollUntilFinal(poll, { signal: limit.signal, onStatus });
  } catch (error) {
    if (!limit.signal.aborted || signal?.aborted) throw error;
    throw new WaitTimeoutError(`the payment was not final within ${timeoutMs} ms`, { code: "wait_timeout" });
  } finally {
    limit.end();
  }
}

const clampPoll = (ms: number): number => Math.min(Math.max(ms, MIN_POLL_MS), MAX_POLL_MS);

async function pollUntilFinal(
  poll: Parameters<typeof waitUntilFinal>[0],
  { signal, onStatus }: { signal: AbortSignal; onStatus: WaitOptions["onStatus"] },
): Promise<GetPaymentStatusResponse> {
  let last: string | undefined;
  for (;;) {
    const startedAt = performance.now();
    let nextPollAt = startedAt;
    try {
      const status = await poll(HOLD_MS, { signal });
      // A poll without news that was held for longer than its interval is repeated at once.
      if (status.status === last) nextPollAt = startedAt + clampPoll(status.pollInMs ?? POLL_MS);
      else onStatus?.(status);
      if (status.isFinal) return status;
      last = status.status;
    } catch (error) {
      if (!isTransient(error)) throw error;
      nextPollAt = performance.now() + (error.retryAfterMs ?? POLL_MS);
    }
    const pauseMs = nextPollAt - performance.now();
    if (pauseMs > 0) await wait(pauseMs, signal);
  }
}
