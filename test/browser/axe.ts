import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const options = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  // Only what is wrong is told of; style sheets of other hosts, which it would fetch, there are none.
  resultTypes: ["violations"],
  preload: false,
};

/** What axe finds wrong. It comes in by the debugger: the page's own policy would not let it. */
export async function findViolations(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page);
  const { result: known } = await session.send("Runtime.evaluate", { expression: "'axe' in window" });
  // Half a megabyte: once for a document, however often it is looked at.
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
