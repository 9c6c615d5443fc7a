import { describe, expect, test } from "vitest";
import { makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { none, openPage, triggerPoll } from "./open-browser.ts";
import { states } from "./payment-state-names.ts";

const { api, pay, linkOf } = await openShop();
const slow = "The buyer pays, the network is slow";
const begin = ["Pay with a test wallet", slow, "The time runs out", "The payment is cancelled"];
const going = ["The money arrives", "The payment fails", "The time runs out"];

async function open(id: string, options: Parameters<typeof openPage>[1] = {}) {
  const { page, pageErrors } = await openPage(api.url, options);
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
  return { page, pageErrors, legal, press, title };
}

test.each([
  [["The time runs out"], "The time is up"],
  [["The payment is cancelled"], "The payment was cancelled"],
  [[slow, "The money arrives"], "Paid"],
  [[slow, "The payment fails"], "The payment failed"],
  [[slow, "The time runs out"], "The time is up"],
])("the console simulates by keyboard: %s", async (presses, end) => {
  const { legal, press, title, pageErrors } = await open(await pay({ checkout: undefined }));
  expect(await legal()).toEqual(begin);
  for (const name of presses) {
    await press(name);
    if (name === slow) {
      await title("Your payment is on its way");
      expect(await legal()).toEqual(going);
    }
  }
  await title(end);
  expect(await legal()).toEqual([]);
  expect(pageErrors).toEqual(none);
});

describe.each(states)("from %s", (from) => {
  // The transitions that part 3 of the specification allows, including those by way of processing.
  const legal: Record<string, string[]> = {
    requires_action: ["processing", "succeeded", "failed", "expired", "cancelled"],
    processing: ["succeeded", "failed", "expired"],
  };
  test.each(states.slice(1))("the server simulates %s only where the state machine allows it", async (to) => {
    const id = await pay({ checkout: undefined });
    await moveToState(api, id, from);
    const isLegal = legal[from]?.includes(to) ?? false;
    const { status, body } = await api.post(`/checkout/${id}/simulate`, {}, { status: to });
    expect({ status, code: body["code"] }).toEqual(
      isLegal ? { status: 200, code: undefined } : { status: 400, code: "invalid_state" },
    );
    const now = await api.get(`/checkout/${id}/status`);
    expect(now.body["status"]).toBe(isLegal ? to : from);
  });

  test("a test wallet pays only a payment that requires action", async () => {
    const id = await pay({ checkout: undefined });
    await moveToState(api, id, from);
    const { status, body } = await api.post(`/checkout/${id}/test-wallet`, {}, {});
    expect({ status, code: body["code"] }).toEqual(
      from === "requires_action"
        ? { status: 200, code: undefined }
        : { status: from === "expired" ? 410 : 400, code: from === "expired" ? "payment_expired" : "invalid_state" },
    );
  });
});

test.each(["light", "dark"] as const)("a test payment says in %s colours that no money moves", async (colorScheme) => {
  const { page } = await open(await pay(), { colorScheme });
  for (const said of ["Test payment. No real money moves.", "This payment is a test: no money moves."])
    expect(await page.getByText(said).isVisible()).toBe(true);
});

test("a live payment has neither a test console nor its routes", async () => {
  const live = await makePayment(api, await makeMerchant(api, { mode: "live" }));
  const { page } = await openPage(api.url);
  await page.goto(linkOf(live));
  expect(await page.locator("#console").count()).toBe(0);
  expect(await page.getByText(/test/i).count()).toBe(0);
  const absent = { status: 404, body: { code: "payment_not_found" } };
  for (const status of states.slice(1))
    expect(await api.post(`/checkout/${live}/simulate`, {}, { status })).toMatchObject(absent);
  expect(await api.post(`/checkout/${live}/test-wallet`, {}, {})).toMatchObject(absent);
  expect((await api.get(`/checkout/${live}/status`)).body["status"]).toBe("requires_action");
});

test("the server refuses a transition that is no longer possible, and the page shows that", async () => {
  const id = await pay({ checkout: undefined });
  const { page, press } = await open(id);
  await page.route("**/status?*", (route) => route.abort());
  await triggerPoll(page);
  await api.post(`/checkout/${id}/simulate`, {}, { status: "cancelled" });
  for (const name of begin.slice(0, 2)) {
    await press(name);
    await page.getByRole("alert").getByText("not possible any more").waitFor();
  }
});

test("the page shows that the test wallet cannot sign for any asset of the shop", async () => {
  const merchant = await makeMerchant(api);
  const { page, press, legal } = await open(await makePayment(api, merchant));
  await api.db.deleteFrom("settlement_destination").where("merchant_id", "=", merchant.merchantId).execute();
  await press("Pay with a test wallet");
  await page.getByRole("alert").getByText("it signs on EVM networks only").waitFor();
  expect(await legal()).toEqual(begin);
});
