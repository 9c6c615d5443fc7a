import { expect, test } from "vitest";
import { makeMerchant, makePayment } from "../rooms/api/start-api.ts";
import { askAnew, none, openPage } from "./browser.ts";
import { openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();
const begin = ["The buyer pays", "The time runs out", "The payment is cancelled"];
const going = ["The money arrives", "The payment fails", "The time runs out"];

async function open(id: string) {
  const { page, misdeeds } = await openPage(api.url);
  await page.goto(linkOf(id));
  const legal = () => page.locator("#console button:visible").allTextContents();
  const press = async (name: string) => {
    const one = page.locator("#console").getByRole("button", { name, exact: true });
    await one.focus();
    await page.keyboard.press("Enter");
  };
  const title = (name: string) => page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
  await page.locator("#console summary").focus();
  await page.keyboard.press("Enter");
  return { page, misdeeds, legal, press, title };
}

test.each([
  [["The time runs out"], "The time is up"],
  [["The payment is cancelled"], "The payment was cancelled"],
  [["The buyer pays", "The money arrives"], "Paid"],
  [["The buyer pays", "The payment fails"], "The payment failed"],
  [["The buyer pays", "The time runs out"], "The time is up"],
])("by keyboard: %s", async (presses, end) => {
  const { legal, press, title, misdeeds } = await open(await pay({ checkout: undefined }));
  expect(await legal()).toEqual(begin);
  for (const name of presses) {
    await press(name);
    if (name === "The buyer pays") {
      await title("Your payment is on its way");
      expect(await legal()).toEqual(going);
    }
  }
  await title(end);
  expect(await legal()).toEqual([]);
  expect(misdeeds).toEqual(none);
});

test("it says that no money moves, and a live payment has none", async () => {
  const { page } = await open(await pay());
  for (const said of ["Test payment. No real money moves.", "This payment is a test: no money moves."])
    expect(await page.getByText(said).isVisible()).toBe(true);
  const live = await makePayment(api, await makeMerchant(api, { mode: "live" }));
  const real = await openPage(api.url);
  await real.page.goto(linkOf(live));
  expect(await real.page.locator("#console").count()).toBe(0);
  expect(await real.page.getByText(/test/i).count()).toBe(0);
});

test("a move that is no longer possible is refused by the server, and the page says so", async () => {
  const id = await pay({ checkout: undefined });
  const { page, press } = await open(id);
  await page.route("**/status?*", (route) => route.abort());
  await askAnew(page);
  await api.post(`/checkout/${id}/simulate`, {}, { status: "cancelled" });
  await press("The buyer pays");
  await page.getByRole("alert").filter({ hasText: "not possible any more" }).waitFor();
});
