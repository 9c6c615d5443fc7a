import type { Page } from "playwright-core";

/** When the page last resumed, and when its text last changed, in milliseconds of the page's own clock. */
type Times = { backAt: number; changedAt: number };

/** Records every title and every alert that a page shows from now on, in order. */
export async function watchText(page: Page): Promise<string[]> {
  const seen: string[] = [];
  await page.exposeFunction("saw", (words: string) => {
    if (words !== seen.at(-1)) seen.push(words);
  });
  await page.addInitScript(() => {
    const { saw } = window as unknown as { saw: (words: string) => void };
    const times: Times = { backAt: 0, changedAt: 0 };
    Object.assign(window, { times });
    let lastAt = 0;
    // A suspended browser gets no event for the suspension, but its clock continues.
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
    const record = () => {
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
      record();
      new MutationObserver(record).observe(document.body, {
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
 * Returns how long a watched page took to show its newest text, measured by the page itself in milliseconds: since its
 * browser resumed, since it was online again, or since the last error response.
 */
export const updateDelayMs = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const { backAt, changedAt } = (window as unknown as { times: Times }).times;
    const answers = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const failed = answers.filter(({ responseStatus }) => responseStatus >= 400);
    return changedAt - Math.max(backAt, ...failed.map(({ responseEnd }) => responseEnd));
  });
