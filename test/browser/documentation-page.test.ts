import { expect, test } from "vitest";
import { makePayment } from "../integration/api/start-api.ts";
import { openShop } from "./browser-shop.ts";
import { none, openPage } from "./open-browser.ts";

const { api, merchant } = await openShop();
// Both tests use one page, because it renders the whole contract.
const { page, pageErrors } = await openPage(api.url, { viewport: { width: 1_280, height: 900 } });
// A slow machine takes minutes to render it.
page.setDefaultTimeout(300_000);
await page.goto(`${api.url}/docs#/Payments/listPayments`);
const operation = page.locator("#operations-Payments-listPayments");

/** Enters an API key in place of the one before, and sends the request of the operation. Returns the requests that were sent. */
async function execute(key: string): Promise<string[]> {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/v1/")) sent.push(request.url());
  });
  await page.locator("button.authorize").first().click();
  const scheme = page.locator(".auth-container").filter({ hasText: "Api-Key" }).first();
  await scheme.waitFor();
  const logout = scheme.locator("button").filter({ hasText: "Logout" });
  if (await logout.isVisible()) await logout.click();
  await scheme.locator("input").first().fill(key);
  await scheme.getByRole("button", { name: /apply|authorize/i }).click();
  await page.locator(".close-modal").click();
  await operation.locator("button.execute").click();
  return sent;
}

test("the documentation page sends a request with a test key and shows the response", async () => {
  const paymentId = await makePayment(api, merchant);
  const sent = await execute(merchant.key);
  const response = operation.locator(".live-responses-table");
  await response.getByText("200", { exact: true }).first().waitFor();
  expect(await response.textContent()).toContain(paymentId);
  expect(sent).toHaveLength(1);
  expect(pageErrors).toEqual(none);
});

test("the documentation page sends no request with a live key, and says why", async () => {
  const sent = await execute("svc_live");
  await operation.getByText("test keys only").first().waitFor();
  expect(sent).toEqual([]);
});
