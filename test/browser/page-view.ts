import type { Page } from "playwright-core";
import { ask, type Shop } from "../../local/buyer-client.ts";

/** A rendered state of a page. */
export type View = {
  name: string;
  /** The caption of its screenshot. */
  caption: string;
  path: string;
  /** Creates a pending payment; `change` brings it to the view's state while its page is open. */
  live?: () => Promise<Live>;
  /** Set when only a computer shows it; all other views exist on both, and their screenshots show a phone. */
  on?: "computer";
  /** The language of its screenshot; English when unset. */
  lang?: string;
  /** Prepares the browser before the page is loaded. */
  before?: (page: Page) => Promise<unknown>;
  /** Leads from the loaded page to the view, independent of the page's language. */
  reach?: (page: Page) => Promise<unknown>;
};

export type Live = { path: string; change: (page: Page) => Promise<unknown> };

/** A shop in test mode, one in live mode, and a function that creates a data page and returns its path. */
export type ViewMerchants = { shop: Shop; live: Shop; makeDataPagePath: () => Promise<string> };

/** The URLs of a shop to which buyers return; nothing serves them. */
export const shopUrls = { successUrl: "https://shop.example.test/thanks", errorUrl: "https://shop.example.test/sorry" };

/** Creates a payment and returns its id. */
export async function makePayment(of: Shop, more: object = {}): Promise<string> {
  // The tests of all views take longer than the default. Below an hour, the page shows minutes and seconds.
  const expiresAt = Math.ceil(Date.now() / 1_000) + 3_500;
  const request = { referenceId: "order-17", amount: { unit: "iso4217/USD", value: "1250" }, expiresAt, ...more };
  const { paymentId } = (await ask(of, "POST", "/v1/payments", request)) as { paymentId: string };
  return paymentId;
}

/** Creates a test payment, moves it through these states, and returns the path of its page. */
export async function makePath(
  { shop }: ViewMerchants,
  way: readonly string[] = [],
  more: object = {},
): Promise<string> {
  const id = await makePayment(shop, more);
  for (const status of way) await ask(shop, "POST", `/checkout/${id}/simulate`, { status });
  return `/?pid=${id}`;
}

/** Returns a function that creates a payment and moves it through these states while its page is open. */
export const moveWhileOpen =
  ({ shop }: ViewMerchants, way: readonly string[], more: object = {}) =>
  async (): Promise<Live> => {
    const id = await makePayment(shop, more);
    const change = async (page: Page): Promise<void> => {
      for (const status of way) await ask(shop, "POST", `/checkout/${id}/simulate`, { status });
      await shown(page, `#${way.at(-1)}`);
    };
    return { path: `/?pid=${id}`, change };
  };

/** Waits until an element of the page is visible. */
export const shown = (page: Page, selector: string) => page.locator(selector).waitFor();
