import { expect, test } from "vitest";
import { makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { insertOptionRow } from "../support/insert-rows.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { none, openPage } from "./open-browser.ts";

const { api, linkOf } = await openShop();
const merchant = await makeMerchant(api, { mode: "live" });

/** Creates a payment whose buyer may have sent a transaction themselves. */
async function makePushed(): Promise<string> {
  const paymentId = await makePayment(api, merchant);
  await insertOptionRow(api.db, paymentId, "push");
  return paymentId;
}

test.each(["while the page is open", "before it is opened"])(
  "a buyer who may have sent money is told not to pay again and sees the payment's reference when it ends %s",
  async (when) => {
    const id = await makePushed();
    const { page, pageErrors } = await openPage(api.url);
    if (when === "before it is opened") await moveToState(api, id, "expired");
    await page.goto(linkOf(id));
    if (when === "while the page is open") {
      expect(await page.getByText(id, { exact: true }).isVisible()).toBe(false);
      await moveToState(api, id, "expired");
    }
    const seen = (text: string) => page.locator("[data-money]:visible").filter({ hasText: text });
    await seen("do not pay again: ask Shop and give the payment number below").waitFor();
    expect(await seen("No money was taken from you.").count()).toBe(0);
    expect(await page.getByText("to begin again").isVisible()).toBe(false);
    expect(await page.locator("dd").getByText(id, { exact: true }).isVisible()).toBe(true);
    expect(pageErrors).toEqual(none);
  },
);
