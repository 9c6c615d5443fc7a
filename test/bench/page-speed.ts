import lighthouse from "lighthouse";
import { freePort } from "../../ops/local/ports.ts";
import { launchBrowser } from "../browser/browser.ts";
import type { Look } from "../browser/look.ts";
import { percentile } from "./stats.ts";

/** An odd number, so that the median is one that was measured. */
export const RUNS = 5;

/** Whatever a page does at first is over by then, milliseconds. */
const LOADED_MS = 20_000;

export type Timed = { median: number; all: number[] };

/** Largest paint, how long the page was deaf between first paint and rest, and what the server took; milliseconds. */
export type Speed = { lcp: Timed; tbt: Timed; ttfb: Timed };

const audits = { lcp: "largest-contentful-paint", tbt: "total-blocking-time", ttfb: "server-response-time" } as const;

/**
 * Pages by Lighthouse, as a phone of its own idea loads them: slow 4G and a processor a quarter as fast. The browser does
 * the throttling: simulated, an open long poll is taken for the server's time. Every run begins with nothing kept, and
 * the pages take turns, so that what else the machine does falls on all of them. Gives them in the order asked for.
 */
export async function measureSpeed(origin: string, looks: readonly Look[]): Promise<Speed[]> {
  const port = await freePort();
  const browser = await launchBrowser(`--remote-debugging-port=${port}`);
  const seen = looks.map(() => ({ lcp: [] as number[], tbt: [] as number[], ttfb: [] as number[] }));
  try {
    for (let run = 0; run < RUNS; run += 1)
      for (const [index, { path }] of looks.entries()) {
        const { lcp, tbt, ttfb } = await load(`${origin}${path}`, port);
        seen[index]?.lcp.push(lcp);
        seen[index]?.tbt.push(tbt);
        seen[index]?.ttfb.push(ttfb);
      }
  } finally {
    await browser.close();
  }
  const time = (all: number[]): Timed => ({ median: percentile(all, 0.5), all });
  return seen.map(({ lcp, tbt, ttfb }) => ({ lcp: time(lcp), tbt: time(tbt), ttfb: time(ttfb) }));
}

async function load(url: string, port: number): Promise<Record<keyof Speed, number>> {
  const result = await lighthouse(url, {
    port,
    logLevel: "error",
    throttlingMethod: "devtools",
    // A page that waits for news never has nothing under way.
    maxWaitForLoad: LOADED_MS,
    // A link that leads nowhere says so with 404, and is a page all the same.
    ignoreStatusCode: true,
    onlyAudits: Object.values(audits),
  });
  const read = (audit: string): number => {
    const value = result?.lhr.audits[audit]?.numericValue;
    if (value === undefined) throw new Error(`Lighthouse has no ${audit}: ${result?.lhr.runtimeError?.message}`);
    return value;
  };
  return { lcp: read(audits.lcp), tbt: read(audits.tbt), ttfb: read(audits.ttfb) };
}
