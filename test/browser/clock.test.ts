import { expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { bring, openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();

test.each([-3_600_000, 3_600_000])(
  "a buyer's clock that is wrong by %i ms changes no second of what is left",
  async (wrong) => {
    const id = await pay();
    const { page } = await openPage(api.url);
    await page.addInitScript((by) => {
      const true_ = Date.now;
      Date.now = () => true_() + by;
    }, wrong);
    await page.goto(linkOf(id));
    await page.waitForTimeout(1_500);
    const [minutes = 0, seconds = 0] = ((await page.getByRole("timer").textContent()) ?? "").split(":").map(Number);
    const { expires_at } = await api.db
      .selectFrom("payment")
      .select("expires_at")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const left = (expires_at.getTime() - Date.now()) / 1_000;
    expect(minutes * 60 + seconds).toBeLessThanOrEqual(Math.ceil(left));
    expect(minutes * 60 + seconds).toBeGreaterThan(left - 2.5);
  },
);

test("a slow network stays calm: after half a minute the page may be closed, and never says that it failed", async () => {
  const id = await pay();
  const { page } = await openPage(api.url);
  await page.clock.install();
  await page.goto(linkOf(id));
  await bring(api, id, "processing");
  await page.getByRole("heading", { name: "Your payment is on its way", level: 1 }).waitFor();
  const calm = page.getByText("You may close this page: Shop will be told.");
  expect(await calm.isVisible()).toBe(false);
  await page.clock.runFor(31_000);
  await calm.waitFor();
  const text = await page.locator("main").innerText();
  expect(text).not.toMatch(/failed|expired|time is up/i);
  expect(text).toContain("Do not pay again.");
  // The same for who opens the page only then.
  await api.db
    .updateTable("payment")
    .set({ updated_at: new Date(Date.now() - 40_000) })
    .where("id", "=", id)
    .execute();
  const later = await openPage(api.url, { javaScriptEnabled: false });
  await later.page.goto(linkOf(id));
  expect(await later.page.getByText("You may close this page").isVisible()).toBe(true);
});
