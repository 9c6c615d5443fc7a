import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { ar } from "../../api/checkout/texts/ar.ts";
import { openDb } from "../../db/open.ts";
import { ask } from "../../local/buyer-client.ts";
import { addPolicy, removePolicy } from "../../payments/buyer-data/collection-policies.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { testActor } from "../support/test-actor.ts";
import { fillIn, send } from "./data-form-helpers.ts";
import { none, openPage } from "./open-browser.ts";

const fleet = await startFleet({ chain: await startChain(), workers: 1, ownUrl: true });
const db = openDb(fleet.databaseUrl, { max: 1, applicationName: "pay-test" });
addCleanup(() => db.destroy());

/** Opens the page of a new test payment; `more` is appended to its URL. */
async function open(more = "") {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.testShop, "POST", "/v1/payments", { amount })) as { id: string };
  const opened = await openPage(fleet.baseUrl);
  await opened.page.goto(`${fleet.baseUrl}/?pid=${id}${more}`);
  return { ...opened, id };
}

/** Makes the shop require buyer data, and returns a function that ends that. */
async function makeDataPagePath() {
  const { merchantId } = fleet.testShop.caller;
  const deps = { db, now: () => new Date() };
  const { id } = await addPolicy(deps, { actor: testActor, merchantId, asset: null, unit: null, minimum: null });
  return () => removePolicy(deps, { actor: testActor, id });
}

async function payByKeyboard(page: Page): Promise<void> {
  await page.locator("#console summary").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Pay with a test wallet" }).focus();
  await page.keyboard.press("Enter");
}

const paid = (page: Page) => page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
const listAttempts = (id: string) =>
  db.selectFrom("attempt").select(["state", "refusal"]).where("payment_id", "=", id).execute();

test("the test wallet really signs: the service verifies its attempt, and the payment succeeds", async () => {
  const { page, id, pageErrors } = await open();
  await payByKeyboard(page);
  await paid(page);
  expect(await listAttempts(id)).toEqual([{ state: "verified", refusal: null }]);
  const row = db.selectFrom("payment").select(["state", "tx_id"]).where("id", "=", id);
  expect(await row.executeTakeFirst()).toEqual({ state: "succeeded", tx_id: `test:${id}` });
  expect(await page.locator("#console button:visible").count()).toBe(0);
  expect(pageErrors).toEqual(none);
});

test("the test wallet sends no confirm before the buyer has given the data that the shop requires", async () => {
  const dropPolicy = await makeDataPagePath();
  const { page, id, pageErrors } = await open();
  await payByKeyboard(page);
  await page.getByRole("alert").getByText("This shop asks who pays.").waitFor();
  expect(await listAttempts(id)).toEqual([]);
  await page.getByRole("link", { name: "Give my details" }).click();
  await fillIn({ page });
  await send({ page });
  await page.waitForURL(`${fleet.baseUrl}/?pid=${id}&lang=en`);
  await payByKeyboard(page);
  await paid(page);
  expect(await listAttempts(id)).toEqual([{ state: "verified", refusal: null }]);
  await dropPolicy();
  expect(pageErrors).toEqual(none);
});

test("the detour over the data page keeps the language, the theme and the return URL of the app", async () => {
  const dropPolicy = await makeDataPagePath();
  const { page, pageErrors } = await open("&theme=dark&returnUrl=metamask%3A%2F%2Fdone%3Forder%3D17");
  await page.addInitScript(() => Object.assign(window, { ReactNativeWebView: { postMessage: () => undefined } }));
  await page.locator("footer summary").click();
  await page.getByRole("link", { name: "العربية" }).click();
  const waitForAppearance = () => page.locator("html[lang=ar][dir=rtl][data-theme=dark]").waitFor();
  await waitForAppearance();
  const payAsTest = async () => {
    // A click before the script runs is lost.
    await page.waitForLoadState();
    await page.locator("#console summary").click();
    await page.getByRole("button", { name: ar.payTest }).click();
  };
  await payAsTest();
  await page.getByRole("link", { name: ar.giveData }).click();
  await page.getByRole("heading", { name: ar.dataTitle }).waitFor();
  await waitForAppearance();
  for (const [id, value] of Object.entries({
    fullName: "ليلى",
    dob: "28",
    month: "2",
    year: "1990",
    address: "Uppsala",
  }))
    await page.locator(`#${id}`).fill(value);
  await page.locator("#country").selectOption("SE");
  await page.locator("#tos").check();
  await page.locator("#send").click();
  await page.locator("#requires_action").waitFor();
  await waitForAppearance();
  await payAsTest();
  await page.getByRole("heading", { name: ar.succeededTitle, level: 1 }).waitFor();
  const toApp = page.getByRole("link", { name: ar.backToApp });
  expect(await toApp.getAttribute("href")).toBe("metamask://done");
  expect(pageErrors).toEqual(none);
  await dropPolicy();
});
