import type { News } from "../script-data.ts";
import { ask } from "./told.ts";

/** Longer than the server holds an answer: whatever has not come by then never will, milliseconds. */
const GIVE_UP_MS = 32_000;
/** Wait after a failure, at least and at most: soon enough to be right within two seconds, milliseconds. */
const AGAIN_MS = [700, 1_200] as const;
/** An answer without news that comes so soon was not held, milliseconds. */
const SOON_MS = 1_000;
/** Browsers tell of one return in several events; they are one question, milliseconds. */
const TOGETHER_MS = 250;

/**
 * Asks where the payment stands until it is final: the server answers when that changes. A page that comes back (from
 * the background, from being frozen, from being offline) does not wait for a question that may be dead; it asks anew.
 * @param version of what is shown
 */
export function follow(version: () => number, tell: (news: News) => void): { askNow: () => void } {
  let controller = new AbortController();
  let began = 0;
  let wake: (() => void) | undefined;
  let isFinal = false;

  async function loop(): Promise<void> {
    while (!isFinal) {
      controller = new AbortController();
      began = performance.now();
      const { signal } = controller;
      const timer = setTimeout(() => controller.abort(), GIVE_UP_MS);
      try {
        const asked = version();
        const news = await ask<News>(`/status?version=${asked}`, { signal });
        isFinal = news.isFinal;
        tell(news);
        // A server that is about to stop answers at once and has no news: the next one is not to be stormed.
        if (news.version === asked && performance.now() - began < SOON_MS) await pause();
      } catch {
        // Away, busy or being restarted: what is shown stays, and was true when it was shown.
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
      const [least, most] = AGAIN_MS;
      const timer = setTimeout(end, least + Math.random() * (most - least));
      wake = end;
    });
  const askNow = (): void => {
    if (wake) wake();
    else if (performance.now() - began >= TOGETHER_MS) controller.abort();
  };
  for (const event of ["pageshow", "focus", "online"]) addEventListener(event, askNow);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && askNow());
  document.addEventListener("resume", askNow);
  void loop();
  return { askNow };
}
