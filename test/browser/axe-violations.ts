import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const options = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  // Report violations only, and do not fetch style sheets: the pages have none on other hosts.
  resultTypes: ["violations"],
  preload: false,
};

/** Returns axe's violations on a page. The debugger injects axe, because the page's policy would block it. */
export async function findViolations(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { result: known } = await session.send("Runtime.evaluate", { expression: "'axe' in window" });
  // Axe has half a megabyte: inject it once per document.
  if (known.value !== true) await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
      JSON.stringify(violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + " " + target))))`,
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  return JSON.parse(result.value as string) as string[];
}
