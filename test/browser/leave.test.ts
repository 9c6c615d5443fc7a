import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { bring, openShop, shopUrls } from "./shop.ts";

const { api, pay, linkOf } = await openShop();

/** A page on a payment, and the shop it may lead to. */
async function open(more: object = {}) {
  const id = await pay(more);
  const opened = await openPage(api.url);
  const { page, context } = opened;
  await context.route("https://shop.example.test/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>The shop</title>" }),
  );
  await page.goto(linkOf(id));
  const left = (): string | undefined => (page.url().startsWith("https://shop") ? page.url() : undefined);
  return { id, page, left };
}

const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true, level: 1 });
/** Longer than the countdown, by far enough to be sure that nothing comes any more. */
const wellOver = (page: Page) => page.waitForTimeout(4_500);

test("three seconds after the end the buyer is at the shop, with the payment's number", async () => {
  const { id, page } = await open();
  await bring(api, id, "succeeded");
  await heading(page, "Paid").waitFor();
  const began = performance.now();
  expect(await page.getByRole("status").textContent()).toBe("Paid You go back to Shop in 3 s.");
  await page.waitForURL("https://shop.example.test/**");
  expect(performance.now() - began).toBeGreaterThan(2_500);
  expect(performance.now() - began).toBeLessThan(4_500);
  expect(page.url()).toBe(`${shopUrls.successUrl}&payment_id=${id}`);
  // Back from the shop does not land on a page that is over.
  await page.goBack();
  expect(page.url()).toBe("about:blank");
});

test.each(["failed", "expired", "cancelled"] as const)("%s leads to the address for errors", async (state) => {
  const { id, page } = await open();
  await bring(api, id, state);
  await page.waitForURL(`${shopUrls.errorUrl}?payment_id=${id}`);
});

test("a payment that is being paid leads nowhere yet", async () => {
  const { id, page, left } = await open();
  await bring(api, id, "processing");
  await heading(page, "Your payment is on its way").waitFor();
  await wellOver(page);
  expect(left()).toBeUndefined();
});

test.each([
  ["the checkbox beforehand", async (page: Page) => page.getByRole("checkbox").uncheck(), async () => undefined],
  ["Escape", async () => undefined, async (page: Page) => page.keyboard.press("Escape")],
  ["the button", async () => undefined, async (page: Page) => page.getByRole("button", { name: "Stay" }).click()],
])("the buyer stays by %s, and the way to the shop stays too", async (_what, before, after) => {
  const { id, page, left } = await open();
  await before(page);
  await bring(api, id, "succeeded");
  await heading(page, "Paid").waitFor();
  await after(page);
  await wellOver(page);
  expect(left()).toBeUndefined();
  const back = page.getByRole("link", { name: "Back to Shop" });
  expect(await back.getAttribute("href")).toBe(`${shopUrls.successUrl}&payment_id=${id}`);
  await back.click();
  await page.waitForURL("https://shop.example.test/**");
});

test("with one bad address of the two nobody is sent anywhere, and the page says that it is over", async () => {
  const { id, page, left } = await open({ checkout: { ...shopUrls, errorUrl: "nonsense" } });
  expect(await page.getByRole("checkbox").count()).toBe(0);
  await bring(api, id, "succeeded");
  await page.getByText("You can close this page.").waitFor();
  await wellOver(page);
  expect(left()).toBeUndefined();
  expect(await page.getByRole("link", { name: "Back to Shop" }).count()).toBe(0);
});
