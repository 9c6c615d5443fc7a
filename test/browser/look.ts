import type { Page } from "playwright-core";
import { ask, type Shop } from "../../ops/local/wallet.ts";

/** Something a buyer can have before him. */
export type Look = {
  name: string;
  /** What it is, for who looks at its picture. */
  caption: string;
  path: string;
  /** Makes a payment that still waits, and comes to the look's state by what `change` does while its page is open. */
  live?: () => Promise<Live>;
  /** Only a computer shows it; all others are for both, and pictured on a phone. */
  on?: "computer";
  /** The language of its picture; English when unset. */
  lang?: string;
  /** Before the page is loaded: what of its world is different. */
  before?: (page: Page) => Promise<unknown>;
  /** From the loaded page to the look; what the languages of the page differ in is not used. */
  reach?: (page: Page) => Promise<unknown>;
};

export type Live = { path: string; change: (page: Page) => Promise<unknown> };

/** Who asks for money: a shop of test mode, one of live mode, and the path of a data page whenever one is wanted. */
export type Tills = { shop: Shop; live: Shop; askWho: () => Promise<string> };

/** Where a shop wants its buyers back; it is not there. */
export const shopUrls = { successUrl: "https://shop.example.test/thanks", errorUrl: "https://shop.example.test/sorry" };

/** A new payment's id. */
export async function makePayment(of: Shop, more: object = {}): Promise<string> {
  const request = { referenceId: "order-17", amount: { unit: "iso4217/USD", value: "1250" }, ...more };
  const { paymentId } = (await ask(of, "POST", "/v1/payments", request)) as { paymentId: string };
  return paymentId;
}

/** A link of a test payment that has gone through these states. */
export async function makePath({ shop }: Tills, way: readonly string[] = [], more: object = {}): Promise<string> {
  const id = await makePayment(shop, more);
  for (const status of way) await ask(shop, "POST", `/checkout/${id}/simulate`, { status });
  return `/?pid=${id}`;
}

/** A payment that goes through these states while its page is open. */
export const goLive =
  ({ shop }: Tills, way: readonly string[], more: object = {}) =>
  async (): Promise<Live> => {
    const id = await makePayment(shop, more);
    const change = async (page: Page): Promise<void> => {
      for (const status of way) await ask(shop, "POST", `/checkout/${id}/simulate`, { status });
      await shown(page, `#${way.at(-1)}`);
    };
    return { path: `/?pid=${id}`, change };
  };

/** Waits until something of the page is visible. */
export const shown = (page: Page, selector: string) => page.locator(selector).waitFor();
