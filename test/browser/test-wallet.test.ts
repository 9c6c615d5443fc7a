import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openDb } from "../../db/open.ts";
import { ask } from "../../ops/local/wallet.ts";
import { addPolicy, removePolicy } from "../../payments/policies.ts";
import { atEnd } from "../support/at-end.ts";
import { startChain } from "../support/chain.ts";
import { startFleet } from "../support/fleet.ts";
import { none, openPage } from "./browser.ts";
import { fillIn, send } from "./collect-form.ts";

const fleet = await startFleet({ chain: await startChain(), workers: 1, ownUrl: true });
const db = openDb(fleet.databaseUrl, { max: 1, applicationName: "pay-test" });
atEnd(() => db.destroy());

/** The page of a new test payment, its console opened by keyboard. */
async function open() {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.testShop, "POST", "/v1/payments", { amount })) as { id: string };
  const opened = await openPage(fleet.baseUrl);
  await opened.page.goto(`${fleet.baseUrl}/?pid=${id}`);
  return { ...opened, id };
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

test("the test wallet really signs: its attempt is handed in and verified, and the payment has succeeded", async () => {
  const { page, id, misdeeds } = await open();
  await payByKeyboard(page);
  await paid(page);
  expect(await listAttempts(id)).toEqual([{ state: "verified", refusal: null }]);
  const row = db.selectFrom("payment").select(["state", "tx_id"]).where("id", "=", id);
  expect(await row.executeTakeFirst()).toEqual({ state: "succeeded", tx_id: `test:${id}` });
  expect(await page.locator("#console button:visible").count()).toBe(0);
  expect(misdeeds).toEqual(none);
});

test("where the shop has to know who pays, nothing is handed in before the details are given", async () => {
  const { merchantId } = fleet.testShop.caller;
  const policy = { merchantId, asset: null, unit: null, minimum: null };
  const { id: policyId } = await addPolicy({ db, now: () => new Date() }, policy);
  const { page, id, misdeeds } = await open();
  await payByKeyboard(page);
  await page.getByRole("alert").getByText("This shop asks who pays.").waitFor();
  expect(await listAttempts(id)).toEqual([]);
  await page.getByRole("link", { name: "Give my details" }).click();
  await fillIn({ page });
  await send({ page });
  await page.waitForURL(`${fleet.baseUrl}/?pid=${id}`);
  await payByKeyboard(page);
  await paid(page);
  expect(await listAttempts(id)).toEqual([{ state: "verified", refusal: null }]);
  await removePolicy({ db }, policyId);
  expect(misdeeds).toEqual(none);
});
