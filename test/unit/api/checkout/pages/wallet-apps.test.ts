import { expect, test } from "vitest";
import { listWalletApps } from "../../../../../api/checkout/pages/wallet-apps.ts";

test.each(["https://pay.example.test/shop/?pid=pay_1", "https://Pay.Example.TEST/shop/?pid=pay_1"])(
  "the links into the browsers of wallets lead to the page %s, in upper case or not",
  (page) => {
    const links = listWalletApps(page, ["eip155:8453", "solana:x"]).map(({ href }) => href);
    const encoded = encodeURIComponent(page);
    expect(links).toEqual([
      "https://link.metamask.io/dapp/pay.example.test/shop/?pid=pay_1",
      `https://phantom.app/ul/browse/${encoded}?ref=${encodeURIComponent("https://pay.example.test")}`,
    ]);
  },
);
