import type { Page } from "playwright-core";

/** By the page's own clock, milliseconds: when it last came back to life, and when its words last changed. */
type Times = { backAt: number; changedAt: number };

/** Every title and every complaint that a page has shown since, in order, each as often as it changed. */
export async function watchWords(page: Page): Promise<string[]> {
  const seen: string[] = [];
  await page.exposeFunction("saw", (words: string) => {
    if (words !== seen.at(-1)) seen.push(words);
  });
  await page.addInitScript(() => {
    const { saw } = window as unknown as { saw: (words: string) => void };
    const times: Times = { backAt: 0, changedAt: 0 };
    Object.assign(window, { times });
    let lastAt = 0;
    // Nobody tells a browser that stood still that it did: its clock has gone on all the same.
    const noticeGap = () => {
      const now = performance.now();
      if (now - lastAt > 5_000) times.backAt = now;
      lastAt = now;
    };
    setInterval(noticeGap, 100);
    addEventListener("online", () => {
      times.backAt = performance.now();
    });
    let last = "";
    const look = () => {
      noticeGap();
      const shown = [...document.querySelectorAll<HTMLElement>("h1, [role=alert]")].filter((one) =>
        one.checkVisibility(),
      );
      const words = shown.map((one) => one.innerText).join(" | ");
      if (words !== last) times.changedAt = performance.now();
      last = words;
      saw(words);
    };
    addEventListener("DOMContentLoaded", () => {
      look();
      new MutationObserver(look).observe(document.body, {
        subtree: true,
        childList: true,
        attributes: true,
        characterData: true,
      });
    });
  });
  return seen;
}

/**
 * How long a watched page took for its newest words, measured by itself, milliseconds: since its browser went on, since
 * it was online again, or since the last answer that was in trouble.
 */
export const tookMs = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { backAt, changedAt } = (window as unknown as { times: Times }).times;
    const answers = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const troubled = answers.filter(({ responseStatus }) => responseStatus >= 400);
    return changedAt - Math.max(backAt, ...troubled.map(({ responseEnd }) => responseEnd));
  });
