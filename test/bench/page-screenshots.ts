import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Say } from "../../local/service.ts";
import { findViolations } from "../browser/axe-violations.ts";
import { openPage } from "../browser/open-browser.ts";
import type { View } from "../browser/page-view.ts";
import { openView } from "../browser/page-views.ts";
import { shrinkPng } from "./shrink-png.ts";
import { phone } from "./slow-network.ts";

/** The viewport of a computer. */
const computer = { viewport: { width: 1_024, height: 768 } };

/**
 * Opens every view in light and dark, with states that change while the page is open, and returns the number of axe
 * violations. With `pictures` it saves each view as `<view>-<theme>.png` in that directory, as a phone shows it, or as a
 * computer does where only a computer has the view.
 */
export async function checkViews(
  origin: string,
  views: readonly View[],
  { pictures, say }: { pictures: string | undefined; say: Say },
): Promise<number> {
  let violations = 0;
  if (pictures) await mkdir(pictures, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const)
    for (const on of ["phone", "computer"] as const) {
      const { page, context } = await openPage(origin, { ...(on === "phone" ? phone : computer), colorScheme });
      for (const view of views.filter(({ on: only = "phone" }) => only === on)) {
        await openView(page, origin, view, view.lang ?? "en", { live: true });
        const found = await findViolations(page);
        violations += found.length;
        say(`${view.name}, ${colorScheme}: ${found.join("; ") || "axe 0"}`);
        if (pictures) await writeFile(join(pictures, `${view.name}-${colorScheme}.png`), await takePicture(page));
      }
      await context.close();
    }
  return violations;
}

/** Takes a screenshot of the whole page. The viewport grows first: a full-page screenshot would disable touch emulation. */
async function takePicture(page: Page): Promise<Buffer> {
  const before = page.viewportSize() ?? computer.viewport;
  const height = (await page.evaluate("document.documentElement.scrollHeight")) as number;
  await page.setViewportSize({ ...before, height: Math.max(height, before.height) });
  const picture = shrinkPng(await page.screenshot());
  await page.setViewportSize(before);
  return picture;
}
