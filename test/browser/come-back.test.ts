import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { askAnew, openPage } from "./browser.ts";
import { bring, openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();

async function open() {
  const id = await pay({ checkout: undefined });
  const { page, context } = await openPage(api.url);
  await page.goto(linkOf(id));
  const title = () => page.locator("h1:visible").textContent();
  const paid = page.getByRole("heading", { name: "Paid", level: 1 });
  return { id, page, context, title, paid };
}

test("a frozen page that comes back shows what is true within two seconds", async () => {
  const { id, page, context, title, paid } = await open();
  const session = await context.newCDPSession(page);
  await session.send("Page.setWebLifecycleState", { state: "frozen" });
  await bring(api, id, "succeeded");
  await pause(1_500);
  const began = performance.now();
  await session.send("Page.setWebLifecycleState", { state: "active" });
  await paid.waitFor({ timeout: 2_000 });
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(await title()).toBe("Paid");
});

test("offline it keeps what it shows; online again it is right within two seconds", async () => {
  const { id, page, context, title, paid } = await open();
  await context.setOffline(true);
  await askAnew(page);
  await bring(api, id, "succeeded");
  await pause(5_000);
  expect(await title()).toBe("Pay $5.00 to Shop");
  await context.setOffline(false);
  await paid.waitFor({ timeout: 2_000 });
});

test.each([500, 503, 429])(
  "answers of %i change nothing on the page, and it is right when they are over",
  async (status) => {
    const { id, page, title, paid } = await open();
    await page.route("**/status?*", (route) =>
      route.fulfill({ status, contentType: "application/json", body: `{"code":"internal_error","message":""}` }),
    );
    // What is being waited for now is answered by the server itself; the next question is not.
    await askAnew(page);
    await bring(api, id, "succeeded");
    await pause(5_000);
    expect(await title()).toBe("Pay $5.00 to Shop");
    await page.unroute("**/status?*");
    await paid.waitFor({ timeout: 2_000 });
  },
);

test("a second tab and a reload show the same truth", async () => {
  const { id, page, context, paid } = await open();
  const second = await context.newPage();
  await second.goto(linkOf(id));
  await bring(api, id, "processing");
  for (const tab of [page, second])
    await tab.getByRole("heading", { name: "Your payment is on its way", level: 1 }).waitFor({ timeout: 2_000 });
  await second.reload();
  expect(await second.locator("h1:visible").textContent()).toBe("Your payment is on its way");
  await api.post(`/checkout/${id}/simulate`, {}, { status: "succeeded" });
  await paid.waitFor({ timeout: 2_000 });
});

test("an answer that is older than what is shown changes nothing", async () => {
  const { id, page, title, paid } = await open();
  const old = await (await fetch(`${api.url}/checkout/${id}/status`)).text();
  await bring(api, id, "succeeded");
  await paid.waitFor();
  await page.route("**/status?*", (route) => route.fulfill({ contentType: "application/json", body: old }));
  await askAnew(page);
  await pause(1_000);
  expect(await title()).toBe("Paid");
});

test("an answer that is cut off in its middle is no answer", async () => {
  const { id, page, title, paid } = await open();
  let cut = 0;
  await page.route("**/status?*", async (route) => {
    cut += 1;
    await route.fulfill({ contentType: "application/json", body: '{"status":"pro' });
  });
  await askAnew(page);
  await expect.poll(() => cut, { timeout: 5_000 }).toBeGreaterThan(1);
  expect(await title()).toBe("Pay $5.00 to Shop");
  await page.unroute("**/status?*");
  await bring(api, id, "succeeded");
  await paid.waitFor({ timeout: 2_500 });
});

test("a server that holds nothing any more, because it stops, is asked once a second and not without end", async () => {
  const { page } = await open();
  let asked = 0;
  await page.route("**/status?*", async (route) => {
    asked += 1;
    const url = new URL(route.request().url());
    url.searchParams.set("maxPollMs", "0");
    await route.fulfill({ response: await route.fetch({ url: url.href }) });
  });
  await askAnew(page);
  await pause(4_000);
  expect(asked).toBeGreaterThan(1);
  expect(asked).toBeLessThan(6);
});
