import type { StatusPayload } from "../pages/script-data.ts";
import { callApi } from "./page-data.ts";

/** Request timeout, milliseconds: longer than the server holds a long poll. */
const REQUEST_TIMEOUT_MS = 32_000;
/** Shortest and longest delay before a retry, milliseconds: the page is up to date within two seconds. */
const RETRY_MS = [700, 1_200] as const;
/** The server did not hold a request that returned an unchanged status sooner than this, milliseconds. */
const NOT_HELD_MS = 1_000;
/**
 * Browsers fire several events when a page becomes visible; events this close together cause one request, milliseconds.
 */
const DEBOUNCE_MS = 250;

/**
 * Long-polls the payment's status until it is final. When the page comes back from the background, from being frozen or
 * from being offline, its open request may be dead: the page drops it and polls anew.
 * @param version returns the version of the status that the page shows
 */
export function followStatus(
  version: () => number,
  onStatus: (payment: StatusPayload) => void,
): { pollNow: () => void } {
  let controller = new AbortController();
  let began = 0;
  let wake: (() => void) | undefined;
  let isFinal = false;

  async function loop(): Promise<void> {
    while (!isFinal) {
      controller = new AbortController();
      began = performance.now();
      const { signal } = controller;
      const timer = setTimeout(() => controller.abort(), REQUEST_TIMEOUT_MS);
      try {
        const shownVersion = version();
        const payment = await callApi<StatusPayload>(`/status?version=${shownVersion}`, { signal });
        isFinal = payment.isFinal;
        onStatus(payment);
        // A server that is shutting down, or that is behind, responds at once: the delay spares it many requests.
        if (payment.version <= shownVersion && performance.now() - began < NOT_HELD_MS) await pause();
      } catch {
        // The server is down, busy or restarting: the page keeps the last status.
        if (!signal.aborted) await pause();
      }
      clearTimeout(timer);
    }
  }
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        wake = undefined;
        resolve();
      };
      const [least, most] = RETRY_MS;
      const timer = setTimeout(end, least + Math.random() * (most - least));
      wake = end;
    });
  const pollNow = (): void => {
    if (wake) wake();
    else if (performance.now() - began >= DEBOUNCE_MS) controller.abort();
  };
  for (const event of ["pageshow", "focus", "online"]) addEventListener(event, pollNow);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && pollNow());
  document.addEventListener("resume", pollNow);
  void loop();
  return { pollNow };
}
