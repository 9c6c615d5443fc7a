import type { CDPSession, Page } from "playwright-core";

/** Slow 4G as Lighthouse defines it for throttling in the browser. */
const SLOW_4G = { offline: false, latency: 562.5, downloadThroughput: 184_320, uploadThroughput: 84_480 };
/** The CPU throttling factor: a quarter of this machine's speed. */
const SLOWER = 4;

/** The screen and touch input of an older phone. */
export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Throttles a page's CPU, and its network where requested. */
export async function slowDown(page: Page, { network }: { network: boolean }): Promise<CDPSession> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  if (network) await session.send("Network.emulateNetworkConditions", SLOW_4G);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  return session;
}
