import lighthouse from "lighthouse";
import { freePort } from "../../ops/local/ports.ts";
import { launchBrowser } from "../browser/browser.ts";
import type { Look } from "../browser/look.ts";
import { percentile } from "./stats.ts";

/** An odd number, so that the median is one that was measured. */
export const RUNS = 5;

/** Whatever a page does at first is over by then, milliseconds. */
const LOADED_MS = 10_000;

export type Timed = { median: number; all: number[] };

/** Largest paint, how long the page was deaf between first paint and rest, and what the server took; milliseconds. */
export type Speed = { lcp: Timed; tbt: Timed; ttfb: Timed };

const audits = { lcp: "largest-contentful-paint", tbt: "total-blocking-time", ttfb: "server-response-time" } as const;

/**
 * A page by Lighthouse, as a phone of its own idea loads it: slow 4G and a processor a quarter as fast. The browser does
 * the throttling: simulated, an open long poll is taken for the server's time. Every run begins with nothing kept.
 */
export async function measureSpeed(origin: string, { path }: Look): Promise<Speed> {
  const port = await freePort();
  const browser = await launchBrowser(`--remote-debugging-port=${port}`);
  const seen = { lcp: [] as number[], tbt: [] as number[], ttfb: [] as number[] };
  try {
    for (let run = 0; run < RUNS; run += 1) {
      const onlyAudits = Object.values(audits);
      const result = await lighthouse(`${origin}${path}`, {
        port,
        logLevel: "error",
        throttlingMethod: "devtools",
        // A page that waits for news never has nothing under way.
        maxWaitForLoad: LOADED_MS,
        onlyAudits,
      });
      for (const [key, audit] of Object.entries(audits) as [keyof typeof audits, string][]) {
        const value = result?.lhr.audits[audit]?.numericValue;
        if (value === undefined) throw new Error(`Lighthouse has no ${audit}: ${result?.lhr.runtimeError?.message}`);
        seen[key].push(value);
      }
    }
  } finally {
    await browser.close();
  }
  const time = (all: number[]): Timed => ({ median: percentile(all, 0.5), all });
  return { lcp: time(seen.lcp), tbt: time(seen.tbt), ttfb: time(seen.ttfb) };
}
