import { expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { addDestinations } from "../../payments/merchants/destinations.ts";
import { asset, destination, makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { insertOptionRow } from "../support/insert-rows.ts";
import { testActor } from "../support/test-actor.ts";
import { findViolations } from "./axe-violations.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { listPaymentWays } from "./list-payment-methods.ts";
import { none, openPage } from "./open-browser.ts";
import { announceWallet } from "./wallet-fakes.ts";

const { api, linkOf } = await openShop();

/** Creates a payment of a new shop whose destination the test can remove and restore. */
async function make(mode: "test" | "live" = "test") {
  const merchant = await makeMerchant(api, { mode });
  const id = await makePayment(api, merchant);
  const { accountId, merchantId } = merchant;
  const lose = () => api.db.deleteFrom("settlement_destination").where("merchant_id", "=", merchantId).execute();
  const settlements = [{ asset, destination }];
  const restore = () => addDestinations(api.deps, { actor: testActor, accountId, mode, merchantId, settlements });
  return { id, lose, restore, ...(await openPage(api.url)) };
}
const title = { name: en.unpayableTitle, level: 1 } as const;

test("the page of an unpayable payment says so without a way to pay, and the payment is payable again once the destination is restored", async () => {
  const { id, lose, restore, page, pageErrors } = await make();
  await lose();
  await page.goto(linkOf(id));
  await page.getByRole("heading", title).waitFor();
  expect(await page.title()).toBe(`${en.unpayableTitle} – Shop`);
  expect(await page.getByText(en.moneyNone).first().isVisible()).toBe(true);
  await page.locator("#console summary").waitFor();
  expect(await listPaymentWays(page)).toEqual([]);
  expect(await findViolations(page)).toEqual([]);
  await restore();
  await page.getByRole("link", { name: en.recheck }).click();
  await page.getByRole("heading", { name: "Pay $5.00 to Shop" }).waitFor();
  expect(pageErrors).toEqual(none);
});

test("the page of a payment that becomes unpayable says so when the buyer chooses a wallet, and shows its end", async () => {
  const { id, lose, page, pageErrors } = await make();
  await page.goto(linkOf(id));
  await announceWallet(page);
  await lose();
  await page.getByRole("button", { name: "Orange Wallet" }).click();
  await page.getByRole("heading", title).waitFor();
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("unpayable-title");
  expect(await page.getByText("This wallet holds too little").count()).toBe(0);
  expect(await listPaymentWays(page)).toEqual([]);
  await moveToState(api, id, "expired");
  await page.getByRole("heading", { name: en.expiredTitle, level: 1 }).waitFor();
  expect(await page.getByRole("heading", title).isVisible()).toBe(false);
  expect(pageErrors).toEqual(none);
});

test("the page of a payment that may have been sent before it became unpayable does not tell the buyer to pay elsewhere", async () => {
  const { id, lose, page } = await make("live");
  await insertOptionRow(api.db, id, "push");
  await lose();
  await page.goto(linkOf(id));
  await page.getByRole("heading", title).waitFor();
  await page.locator("[data-money]:visible").filter({ hasText: "do not pay again: ask Shop" }).waitFor();
  expect(await page.getByText("to pay in another way").first().isVisible()).toBe(false);
  expect(await page.locator("dd").getByText(id, { exact: true }).isVisible()).toBe(true);
});
