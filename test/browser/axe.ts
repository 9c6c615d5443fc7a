import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Read once by a document, however often it is looked at. */
const once = `window.axe || (() => { ${axe} })()`;
const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds wrong. It comes in by the debugger: the page's own policy would not let it. */
export async function findViolations(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: once });
  const { result } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, { runOnly: ${JSON.stringify(tags)} }).then(({ violations }) =>
      JSON.stringify(violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + " " + target))))`,
    awaitPromise: true,
    returnByValue: true,
  });
  return JSON.parse(result.value as string) as string[];
}
