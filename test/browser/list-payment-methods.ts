import type { Page } from "playwright-core";

/** Returns every visible way to pay: wallets, options, the code, the link and links to wallets. */
export const listPaymentWays = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const ways = "#wallets button, #choices .main, #open-in a, .qr, #link, #copy, #console button.main";
    return [...document.querySelectorAll(ways)]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }))
      .map((one) => one.id || one.textContent || one.className.toString());
  });
