import { openPage } from "../browser/open-browser.ts";
import type { View } from "../browser/page-view.ts";
import { phone, slowDown } from "./slow-network.ts";

/** The bytes on the wire, headers included, and the layout shift that no input caused. */
export type Weight = { requests: number; bytes: number; script: number; cls: number };

/** The wait for late changes, such as a wallet or the text that there is none; milliseconds. */
const LATE_MS = 2_000;

const observe = `window.seen = 0;
  new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) seen += one.value; })
    .observe({ type: "layout-shift", buffered: true });`;

/** Measures the first load of a page on a slow phone, without its long poll. */
export async function measureWeight(origin: string, { path }: View): Promise<Weight> {
  const { page, context } = await openPage(origin, phone);
  await page.addInitScript(observe);
  const session = await slowDown(page, { network: true });
  const urls = new Map<string, string>();
  const loaded: { url: string; bytes: number }[] = [];
  session.on("Network.requestWillBeSent", ({ requestId, request }) => void urls.set(requestId, request.url));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength: bytes }) =>
    loaded.push({ url: urls.get(requestId) ?? "", bytes }),
  );
  await page.goto(`${origin}${path}`);
  await page.waitForTimeout(LATE_MS);
  const cls = (await page.evaluate("seen")) as number;
  await context.close();
  const first = loaded.filter(({ url }) => url.startsWith("http") && !url.includes("/status"));
  const sum = (some: typeof first): number => Math.round(some.reduce((total, { bytes }) => total + bytes, 0));
  const script = sum(first.filter(({ url }) => url.endsWith(".js")));
  return { requests: first.length, bytes: sum(first), script, cls };
}
