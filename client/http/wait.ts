import { startTimer } from "./time-limit.ts";

/** Resolves after a time, milliseconds. Rejects with the signal's reason as soon as it is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      stopTimer();
      reject(signal?.reason);
    };
    const stopTimer = startTimer(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    signal?.addEventListener("abort", stop, { once: true });
  });
}
