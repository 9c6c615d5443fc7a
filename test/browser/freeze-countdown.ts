import type { Page } from "playwright-core";

/** A string, because the bench's type check has no DOM types. */
const hold = `{
  const now = performance.now.bind(performance);
  let held;
  performance.now = () => {
    const isCounting = document.getElementById("stay")?.checkVisibility() ?? false;
    held = isCounting ? (held ?? now()) : undefined;
    return held ?? now();
  };
}`;

/**
 * Freezes the time of pages that are loaded from now on while the countdown to the shop is visible, so that a test can
 * check or stop it over the debugger in time. Afterwards the pages have the real time again.
 */
export const freezeCountdown = (page: Page): Promise<unknown> => page.addInitScript(hold);
