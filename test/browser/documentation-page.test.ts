import { expect, test } from "vitest";
import { makePayment } from "../integration/api/start-api.ts";
import { openShop } from "./browser-shop.ts";
import { none, openPage } from "./open-browser.ts";

const { api, merchant } = await openShop();

/** Opens the documentation of the list of payments, and enters an API key. Returns a function that sends the request. */
async function openReference(key: string) {
  const { page, pageErrors } = await openPage(api.url, { viewport: { width: 1_280, height: 900 } });
  const sent: string[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).pathname.startsWith("/v1/")) sent.push(request.url());
  });
  // The page renders the whole contract before it shows anything.
  page.setDefaultTimeout(45_000);
  await page.goto(`${api.url}/docs#/Payments/listPayments`);
  await page.locator("button.authorize").first().click();
  const scheme = page.locator(".auth-container").filter({ hasText: "Api-Key" }).first();
  await scheme.locator("input").first().fill(key);
  await scheme.getByRole("button", { name: /apply|authorize/i }).click();
  await page.locator(".close-modal").click();
  const operation = page.locator("#operations-Payments-listPayments");
  return { operation, pageErrors, sent, execute: () => operation.locator("button.execute").click() };
}

test("the documentation page sends a request with a test key and shows the response", async () => {
  const paymentId = await makePayment(api, merchant);
  const { operation, pageErrors, sent, execute } = await openReference(merchant.key);
  await execute();
  const response = operation.locator(".live-responses-table");
  await response.getByText("200", { exact: true }).first().waitFor();
  expect(await response.textContent()).toContain(paymentId);
  expect(sent).toHaveLength(1);
  expect(pageErrors).toEqual(none);
});

test("the documentation page sends no request with a live key, and says why", async () => {
  const { operation, sent, execute } = await openReference("svc_live");
  await execute();
  await operation.getByText("test keys only").first().waitFor();
  expect(sent).toEqual([]);
});
