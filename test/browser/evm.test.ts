import type { Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { openDb } from "../../db/open.ts";
import { newKey } from "../../ops/local/networks-document.ts";
import { ask, pay } from "../../ops/local/wallet.ts";
import { addPolicy, removePolicy } from "../../payments/policies.ts";
import { fundBuyer, startChain, transfersTo } from "../support/chain.ts";
import { startFleet } from "../support/fleet.ts";
import { none, openPage } from "./browser.ts";
import { installWallets, type WalletPlan } from "./evm-wallets.ts";
import { shopUrls } from "./shop.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
const beta = await fundBuyer(chain);
const poor = privateKeyToAccount(newKey().privateKey);

/** The page of a new live payment, in a browser with these wallets. */
async function open(plans: WalletPlan[], checkout: object | undefined = undefined) {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount, checkout })) as { id: string };
  const opened = await openPage(fleet.baseUrl);
  const calls = await installWallets(opened.context, chain, plans);
  await opened.context.route("https://shop.example.test/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>The shop</title>" }),
  );
  await opened.page.goto(`${fleet.baseUrl}/?pid=${id}`);
  return { ...opened, id, calls };
}

/** Presses a button by keyboard alone. */
async function press(page: Page, name: string | RegExp): Promise<void> {
  const one = page.getByRole("button", { name });
  await one.waitFor();
  for (let tabs = 0; tabs < 40; tabs += 1) {
    if (await one.evaluate((button) => button === document.activeElement)) return page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
  }
  throw new Error(`the keyboard does not reach ${name}`);
}

const alert = (page: Page, text: string) => page.getByRole("alert").filter({ hasText: text }).waitFor();
const paid = (page: Page) => page.getByRole("heading", { name: "Paid", level: 1 }).waitFor({ timeout: 45_000 });

test("by keyboard: one wallet declines, another one pays, and the buyer arrives at the shop; the money is on the chain", async () => {
  const before = (await transfersTo(chain, chain.keys.treasury.address)).length;
  const plans = [
    { name: "Alpha", account: poor, refuse: { eth_requestAccounts: [4001] } },
    { name: "Beta", account: beta },
  ];
  const { page, id, calls, misdeeds } = await open(plans, shopUrls);
  await press(page, "Alpha");
  await alert(page, "You declined in your wallet. Nothing was charged.");
  await press(page, "Beta");
  await press(page, "12.50 USDC on");
  await page.waitForURL(`${shopUrls.successUrl}&payment_id=${id}`, { timeout: 30_000 });
  expect(calls.filter(({ wallet }) => wallet === "Alpha").map(({ method }) => method)).toEqual(["eth_requestAccounts"]);
  expect(calls.filter(({ wallet }) => wallet === "Hostile")).toEqual([]);
  expect(calls.filter(({ method }) => method === "eth_signTypedData_v4")).toEqual([
    { wallet: "Beta", method: "eth_signTypedData_v4" },
  ]);
  expect((await transfersTo(chain, chain.keys.treasury.address)).length).toBe(before + 1);
  expect(misdeeds).toEqual(none);
});

test("who cannot see is told what to do and what has come of it, and no more", async () => {
  const { page } = await open([{ name: "Beta", account: beta }]);
  await page.evaluate(() => {
    const said = document.getElementById("said") as HTMLElement;
    const heard: (string | null)[] = [];
    Object.assign(window, { heard });
    new MutationObserver(() => heard.push(said.textContent)).observe(said, { childList: true });
  });
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await paid(page);
  const heard = await page.evaluate(() => (window as unknown as { heard: string[] }).heard);
  expect(heard.slice(0, 2)).toEqual(["Open Beta and answer its question.", "Approve the payment in Beta."]);
  expect(heard.at(-1)).toBe("Paid");
  expect(heard.length).toBeLessThanOrEqual(4);
});

test("whatever is declined on the way, the next try works and says that nothing was charged", async () => {
  const refuse = {
    eth_requestAccounts: [4001, -32002],
    wallet_switchEthereumChain: [4001, 4902],
    eth_signTypedData_v4: [4001, 4100],
  };
  const { page, misdeeds } = await open([{ name: "Beta", account: beta, chainId: 1, refuse }]);
  const sayings = [
    "You declined in your wallet. Nothing was charged.",
    "Beta still has a question open.",
    "You declined in your wallet. Nothing was charged.",
    "Beta has not changed to",
    "You declined in your wallet. Nothing was charged.",
    "Beta could not do it. Nothing was charged.",
  ];
  for (const [tries, said] of sayings.entries()) {
    await page.getByRole("button", { name: "Beta" }).click();
    if (tries >= 2) await page.getByRole("button", { name: "12.50 USDC" }).click();
    await alert(page, said);
  }
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await paid(page);
  expect(misdeeds).toEqual(none);
});

test("a wallet that holds nothing is told so, and another one can be taken", async () => {
  const { page } = await open([
    { name: "Poor", account: poor },
    { name: "Beta", account: beta },
  ]);
  await page.getByRole("button", { name: "Poor" }).click();
  await alert(page, "This wallet holds too little of what this shop takes");
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "Choose another wallet" }).click();
  expect(await page.getByRole("button", { name: "Poor" }).isVisible()).toBe(true);
});

test("a wallet that comes late is offered; two that share an identity are not; a name is text and an icon runs nothing", async () => {
  const evil = `</script><img src=x onerror="document.title='owned'">`;
  const script = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"><script>top.document.title='owned'</script></svg>`;
  const { page, misdeeds } = await open([
    { name: evil, account: poor, icon: script },
    { name: "Twin one", account: poor, uuid: "twin" },
    { name: "Twin two", account: poor, uuid: "twin" },
    { name: "Remote", account: poor, icon: "https://tracker.example.test/icon.png" },
    { name: "Late", account: poor, lateMs: 5_000 },
  ]);
  await page.getByRole("button", { name: "Late" }).waitFor();
  expect(await page.locator("#wallets button").allTextContents()).toEqual([evil, "Remote", "Late"]);
  expect(await page.title()).not.toBe("owned");
  expect(await page.locator("#wallets img").count()).toBe(2);
  expect(misdeeds).toEqual(none);
});

test("window.ethereum is offered only when no wallet announces itself", async () => {
  const { page } = await open([]);
  await page.getByRole("button", { name: "Ethereum" }).waitFor();
  const other = await open([{ name: "Beta", account: beta }]);
  await other.page.waitForTimeout(1_500);
  expect(await other.page.locator("#wallets button").allTextContents()).toEqual(["Beta"]);
});

test("paid elsewhere meanwhile: the page shows it at once, and a wallet that answers then pays nothing", async () => {
  const { page, id } = await open([{ name: "Beta", account: beta }]);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).waitFor();
  const other = await fundBuyer(chain);
  await pay(fleet.shop, id, other, chain.id);
  await paid(page);
  expect(await page.getByRole("button", { name: "12.50 USDC" }).count()).toBe(0);
});

test("an answer to the confirm that is lost costs nothing: the same confirm again is the same payment", async () => {
  const { page } = await open([{ name: "Beta", account: beta }]);
  await page.getByRole("button", { name: "Beta" }).click();
  const option = page.getByRole("button", { name: "12.50 USDC" });
  await option.waitFor();
  await page.route("**/confirm", async (route) => {
    await route.fetch();
    await route.abort();
    await page.unroute("**/confirm");
  });
  await option.click();
  await paid(page);
});

test("a shop that has to know who pays: the form in between, and back to the payment", async () => {
  const db = openDb(fleet.databaseUrl, { max: 1, applicationName: "pay-test" });
  const { merchantId } = fleet.shop.caller;
  const policy = { merchantId, asset: null, unit: null, minimum: null };
  const { id: policyId } = await addPolicy({ db, now: () => new Date() }, policy);
  const { page, id, misdeeds } = await open([{ name: "Beta", account: beta }]);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await page.getByText("Corner shop has to know who pays.").first().waitFor();
  await page.getByRole("button", { name: "Give my details" }).click();
  await page.getByLabel("Full name").fill("Zoë Quux");
  for (const [part, value] of Object.entries({ Day: "28", Month: "2", Year: "1990" }))
    await page.getByLabel(part).fill(value);
  await page.getByLabel("Country").selectOption("SE");
  await page.getByLabel("Address").fill("Uppsala 17");
  await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.waitForURL(`${fleet.baseUrl}/?pid=${id}`);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await paid(page);
  expect(misdeeds).toEqual(none);
  await removePolicy({ db }, policyId);
  await db.destroy();
});
