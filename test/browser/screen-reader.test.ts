import { expect, test } from "vitest";
import { makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { insertOptionRow } from "../support/insert-rows.ts";
import { moveToState, openShop } from "./browser-shop.ts";
import { openPage } from "./open-browser.ts";

const { api, pay, linkOf } = await openShop();

test("a screen reader announces a whole payment in order, each message once, in at most six messages", async () => {
  const id = await pay({ checkout: undefined });
  const { page, context } = await openPage(api.url);
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.addInitScript(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    addEventListener("DOMContentLoaded", () => {
      const said = document.getElementById("announcement") as HTMLElement;
      new MutationObserver(() => said.textContent && heard.push(said.textContent)).observe(said, { childList: true });
    });
  });
  await page.goto(linkOf(id));
  const said = page.getByRole("status");
  expect(await said.getAttribute("aria-live")).toBe("polite");
  expect(await said.getAttribute("aria-atomic")).toBe("true");

  await page.getByRole("button", { name: "Copy" }).press("Enter");
  await page.getByText("Link copied.").first().waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(linkOf(id));
  await moveToState(api, id, "processing");
  await page.getByRole("heading", { name: "Your payment is on its way", level: 1 }).waitFor();
  expect(await page.title()).toBe("Your payment is on its way – Shop");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("processing-title");
  await bringOn(id);
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(await page.title()).toBe("Paid – Shop");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("succeeded-title");
  expect(await page.evaluate(() => (window as unknown as { heard: string[] }).heard)).toEqual([
    "Link copied.",
    "Your payment is on its way We are waiting for the network to confirm it. You need not do anything. Do not pay again.",
    "Paid",
  ]);
});

/** Completes the payment as the test console does. */
async function bringOn(id: string): Promise<void> {
  const answer = await api.post(`/checkout/${id}/simulate`, {}, { status: "succeeded" });
  expect(answer.status).toBe(200);
}

test("an end without payment first says that no money was taken", async () => {
  for (const [state, words] of [
    ["expired", "The time is up No money was taken from you."],
    ["failed", "The payment failed No money was taken from you."],
    ["cancelled", "The payment was cancelled No money was taken from you."],
  ] as const) {
    const id = await pay({ checkout: undefined });
    const { page } = await openPage(api.url);
    await page.goto(linkOf(id));
    await moveToState(api, id, state);
    await page.locator(`#${state}`).waitFor();
    expect(await page.getByRole("status").textContent()).toBe(words);
    // The message is a named region, for screen reader users who navigate by regions.
    expect(await page.getByRole("region", { name: (await page.title()).replace(" – Shop", "") }).count()).toBe(1);
    const order = await page.locator(`#${state} p:visible`).allTextContents();
    expect(order[0]).toBe("No money was taken from you.");
  }
});

test("the page first says not to pay again when the buyer may have sent money that has not arrived", async () => {
  const id = await makePayment(api, await makeMerchant(api, { mode: "live" }));
  const { page } = await openPage(api.url);
  await page.goto(linkOf(id));
  // The service gave the buyer an action to send the transaction themselves.
  await insertOptionRow(api.db, id, "push");
  for (const seen of ["in an open page", "in a new page"]) {
    if (seen === "in an open page") await moveToState(api, id, "expired");
    else await page.reload();
    await page.locator("#expired").waitFor();
    const [first] = await page.locator("#expired p:visible").allTextContents();
    expect({ seen, first }).toEqual({
      seen,
      first: expect.stringMatching(/^No money has arrived here\..* do not pay again/),
    });
    expect(await page.getByText("No money was taken from you.").filter({ visible: true }).count()).toBe(0);
  }
});

test("the countdown is silent except for three warnings", async () => {
  const id = await pay();
  const { page } = await openPage(api.url);
  await page.clock.install();
  // Only now, so that the time in which the browser opens a page does not count.
  await api.db
    .updateTable("payment")
    .set({ expires_at: new Date(Date.now() + 240_000) })
    .where("id", "=", id)
    .execute();
  await page.goto(linkOf(id));
  const clock = page.getByRole("timer");
  expect(await clock.getAttribute("aria-live")).toBe("off");
  const heard: (string | null)[] = [];
  for (const seconds of [60, 61, 60, 40]) {
    await page.clock.runFor(seconds * 1_000);
    heard.push(await page.getByRole("status").textContent());
  }
  expect(heard).toEqual(["", "2 minutes left to pay.", "1 minute left to pay.", "20 seconds left to pay."]);
});
