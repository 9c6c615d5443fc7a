import type { CDPSession, Page } from "playwright-core";

/** Slow 4G as Lighthouse has it where the browser itself does the throttling. */
const SLOW_4G = { offline: false, latency: 562.5, downloadThroughput: 184_320, uploadThroughput: 84_480 };
/** A processor a quarter as fast as this machine's. */
const SLOWER = 4;

/** A phone that is not new, its screen and its pointer: a finger. */
export const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Makes a page's processor slow, and its network too where that is the subject. */
export async function slowDown(page: Page, { network }: { network: boolean }): Promise<CDPSession> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  if (network) await session.send("Network.emulateNetworkConditions", SLOW_4G);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  return session;
}
