import { expect, test } from "vitest";
import { runOperatorRequests } from "../../payments/operators/run-requests.ts";
import { computeTotp, totpStep } from "../../payments/operators/totp.ts";
import { fundBuyer, sendUsdc, startChain } from "../support/evm-chain.ts";
import { makeMerchantFixture } from "../support/merchant-fixture.ts";
import { hostileText, openConsole } from "../support/open-console.ts";
import { findViolations } from "./axe-violations.ts";
import { findMarkupErrors, findPolicyWeaknesses } from "./markup-errors.ts";
import { none, openPage, type PageOptions } from "./open-browser.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { board, people, get } = await openConsole(fixture);
const url = await board.listen({ host: "127.0.0.1", port: 0 });

const buyer = await fundBuyer(chain);
const paid = await fixture.pay(buyer, 250n);
await sendUsdc(chain, buyer, chain.keys.treasury.address, 3_000_000n);
await fixture.watch();
await fixture.db.updateTable("payment").set({ reference_id: hostileText }).where("id", "=", paid).execute();
await fixture.db.updateTable("transfer").set({ last_error: hostileText }).execute();

/** Opens a page in the session of an operator, who logs in on the login page. */
async function openAs(name: "olga" | "anna", options: PageOptions = {}) {
  // The login leads to bull-board, whose page provokes the policy with a style sheet of Google's fonts.
  const opened = await openPage(url, { ...options, provokes: true });
  const { page } = opened;
  // A code is accepted once, and a test that fails is repeated.
  fixture.clock.advance(30_000);
  await page.goto(`${url}/login`);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(people[name].password);
  await page.getByLabel("Code").fill(computeTotp(people[name].secret, totpStep(fixture.deps.now())));
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(`${url}/`);
  return opened;
}

test("no page of the console has axe violations, invalid markup, overflow on a phone, scripts or console errors", async () => {
  const { page, pageErrors } = await openAs("anna");
  const search = `/console?${new URLSearchParams({ q: hostileText.slice(0, 30) })}`;
  const paths = [
    ...["/console", search, `/console/payments/${paid}`, `/console/merchants/${fixture.merchantId}`],
    ...["unfinished", "exceptions", "held", "lanes", "endpoints"].map((name) => `/console/${name}`),
    ...["refund-payment", "retry-payment"].map((action) => `/console/actions/${action}/${paid}`),
    "/console/actions/book-exception/1",
    "/console/payments/pay_unknown",
  ];
  const wrongs: Record<string, string[]> = {};
  // The page of the queues, where the login ends, is bull-board's.
  pageErrors.console.length = 0;
  pageErrors.foreign.length = 0;
  pageErrors.reports.length = 0;
  for (const path of paths) {
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 320, height: 800 });
    const answer = await page.goto(`${url}${path}`);
    const found = [...(await findMarkupErrors(String(await answer?.text()))), ...(await findViolations(page))];
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) found.push(`${over} px too wide`);
    if ((await page.locator("script").count()) > 0) found.push("has a script");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 1280, height: 800 });
    found.push(...(await findViolations(page)));
    if (found.length > 0) wrongs[path] = found;
  }
  expect(wrongs).toEqual({});
  // Pages of ids that do not exist answer 404, which the browser reports as a network error.
  expect(pageErrors).toEqual(none);
  expect(findPolicyWeaknesses(String((await get("/console", "vera")).headers["content-security-policy"]))).toEqual([]);
});

test("an operator without script finds a payment, holds payouts of its merchant and reads what became of it", async () => {
  const { page } = await openAs("olga", { javaScriptEnabled: false });
  await page.goto(`${url}/console`);
  await page.getByRole("searchbox").fill(buyer.address);
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(`${url}/console/payments/${paid}`);
  await page.getByRole("link", { name: fixture.merchantId }).click();
  await page.getByRole("link", { name: "Hold payouts" }).click();
  await page.getByRole("button", { name: "Hold payouts" }).click();
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Waiting for a worker");
  await runOperatorRequests(fixture.deps);
  // The page loads again by itself.
  await expect.poll(() => page.getByRole("status").textContent()).toBe("Done: the payouts are held.");
  await page.getByRole("link", { name: fixture.merchantId }).click();
  await page.getByRole("link", { name: "Release payouts" }).waitFor();
});
