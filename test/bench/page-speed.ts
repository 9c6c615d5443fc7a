import lighthouse from "lighthouse";
import { freePort } from "../../local/free-ports.ts";
import { launchBrowser } from "../browser/open-browser.ts";
import type { View } from "../browser/page-view.ts";
import { percentile } from "./bench-stats.ts";

/** The number of runs; odd, so that the median is a measured value. */
export const RUNS = 5;

/** The time after which a page has finished its initial work, milliseconds. */
const LOADED_MS = 20_000;

type Timed = { median: number; all: number[] };

/** Largest contentful paint, total blocking time and server response time; milliseconds. */
export type Speed = { lcp: Timed; tbt: Timed; ttfb: Timed };

const audits = { lcp: "largest-contentful-paint", tbt: "total-blocking-time", ttfb: "server-response-time" } as const;

/**
 * Measures pages with Lighthouse on its default phone: slow 4G and a CPU at a quarter of the speed. The browser throttles,
 * because simulated throttling counts an open long poll as server time. Every run starts with an empty cache, and the
 * pages alternate, so that other load on the machine affects all of them equally. Returns the results in input order.
 */
export async function measureSpeed(origin: string, views: readonly View[]): Promise<Speed[]> {
  const port = await freePort();
  const browser = await launchBrowser(`--remote-debugging-port=${port}`);
  const seen = views.map(() => ({ lcp: [] as number[], tbt: [] as number[], ttfb: [] as number[] }));
  try {
    for (let run = 0; run < RUNS; run += 1)
      for (const [index, { path }] of views.entries()) {
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
    // A page with an open long poll is never network-idle.
    maxWaitForLoad: LOADED_MS,
    // The not-found page has the status 404 but is measured like the others.
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
