import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import type { Say } from "../../ops/local/service.ts";
import { findViolations } from "../browser/axe.ts";
import { openPage } from "../browser/browser.ts";
import type { Look } from "../browser/look.ts";
import { openLook } from "../browser/looks.ts";
import { phone } from "./page-slow.ts";
import { shrinkPng } from "./small-png.ts";

/** The window of somebody at a desk. */
const computer = { viewport: { width: 1_024, height: 768 } };

/**
 * Looks at everything there is, in light and dark, states as they come while a page is open: gives how much axe finds
 * wrong in all. With `pictures` each becomes a
 * PNG in that directory, `<look>-<theme>.png`, as a phone shows it; what is a computer's alone as that shows it.
 */
export async function lookAt(
  origin: string,
  looks: readonly Look[],
  { pictures, say }: { pictures: string | undefined; say: Say },
): Promise<number> {
  let violations = 0;
  if (pictures) await mkdir(pictures, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const)
    for (const on of ["phone", "computer"] as const) {
      const { page, context } = await openPage(origin, { ...(on === "phone" ? phone : computer), colorScheme });
      for (const look of looks.filter(({ on: only = "phone" }) => only === on)) {
        await openLook(page, origin, look, look.lang ?? "en", { live: true });
        const found = await findViolations(page);
        violations += found.length;
        say(`${look.name}, ${colorScheme}: ${found.join("; ") || "axe 0"}`);
        if (pictures) await writeFile(join(pictures, `${look.name}-${colorScheme}.png`), await takePicture(page));
      }
      await context.close();
    }
  return violations;
}

/** All of a page. The window grows for it: a picture beyond the window would be taken without the finger of a phone. */
async function takePicture(page: Page): Promise<Buffer> {
  const before = page.viewportSize() ?? computer.viewport;
  const height = (await page.evaluate("document.documentElement.scrollHeight")) as number;
  await page.setViewportSize({ ...before, height: Math.max(height, before.height) });
  const picture = shrinkPng(await page.screenshot());
  await page.setViewportSize(before);
  return picture;
}
