import type { Page } from "playwright-core";

/** As a text, for the type check of the bench knows no browser. */
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
 * Time stands still, in the pages that are loaded from now on, as long as the countdown to the shop is on the screen:
 * who looks at it, or stops it, over the debugger cannot come too late. Once it is gone time is where it would have been.
 */
export const holdCountdown = (page: Page): Promise<unknown> => page.addInitScript(hold);
