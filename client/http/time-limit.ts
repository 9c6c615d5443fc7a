/** The longest time that a timer of the platform can have; a longer one would fire at once. Milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Calls a function when a time has passed, milliseconds. The longest time is 24 days. Returns what stops it. */
export function startTimer(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, Math.min(ms, MAX_TIMER_MS));
  return () => clearTimeout(timer);
}

/** Throws for a limit of time that is none. Infinity is one: it stands for no limit. */
export function requireTimeout(ms: number | undefined): void {
  if (ms !== undefined && !(typeof ms === "number" && ms >= 0))
    throw new TypeError("timeoutMs: expected milliseconds, 0 or more");
}

/** What ends a piece of work: a limit of time, or the caller's signal. */
export type TimeLimit = {
  /** Is aborted at the limit, and when the caller's signal is. */
  signal: AbortSignal;
  /** Begins the time anew. */
  restart(): void;
  /** Stops the time; the caller's signal still counts. */
  pause(): void;
  /** Stops the time and forgets the caller's signal. */
  end(): void;
};

/** Begins a limit of time, milliseconds. The caller ends it with `end`. */
export function limitTime(ms: number, signal: AbortSignal | undefined): TimeLimit {
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  const start = () => startTimer(ms, () => controller.abort());
  let pause = start();
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort, { once: true });
  return {
    signal: controller.signal,
    restart() {
      pause();
      pause = start();
    },
    pause: () => pause(),
    end() {
      pause();
      signal?.removeEventListener("abort", abort);
    },
  };
}
