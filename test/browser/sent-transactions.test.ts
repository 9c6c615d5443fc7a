import type { Page } from "playwright-core";
import { type Address, encodeAbiParameters, keccak256, pad } from "viem";
import { afterEach, expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { mine } from "../support/evm-chain.ts";
import { tokenOf } from "../support/token-kinds.ts";
import { waitFor } from "../support/wait-for.ts";
import { listPaymentWays } from "./list-payment-methods.ts";
import { openTokenKindsShop } from "./token-kinds-shop.ts";

const { chain, assets, open } = await openTokenKindsShop();
const send = "eth_sendTransaction";
/** The storage slot of the test token's balances: after its name and its symbol. */
const BALANCES_SLOT = 2n;

const showsStep = (page: Page, text: string) => page.locator("#step").filter({ hasText: text }).waitFor();
const paid = (page: Page) => page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
const asksNotToPay = (page: Page) =>
  page.getByRole("alert").filter({ hasText: "If your wallet shows that you have sent some" }).waitFor();
const offersWallets = (page: Page) => page.getByRole("button", { name: "Beta" }).waitFor();

async function holdBlocks(): Promise<void> {
  await chain.client.setAutomine(false);
}
afterEach(async () => {
  await chain.client.setAutomine(true);
  await mine(chain);
});

async function emptyAccount(address: Address): Promise<void> {
  const index = keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [address, BALANCES_SLOT]));
  await chain.client.setStorageAt({ address: tokenOf(assets.push), index, value: pad("0x0") });
}

test("a reloaded page and a second tab track an unmined push, and neither offers to pay again", async () => {
  const { page, context, link, choose, acts } = await open(assets.push);
  await holdBlocks();
  const other = await context.newPage();
  await other.goto(link);
  await offersWallets(other);
  await choose();
  await waitFor(() => acts().length === 1, { within: 20_000 });
  await showsStep(other, en.sentUnclear);
  expect(await listPaymentWays(other)).toEqual([]);
  await page.reload();
  await showsStep(page, en.sentUnclear);
  expect(await listPaymentWays(page)).toEqual([]);
  await chain.client.setAutomine(true);
  await mine(chain);
  await Promise.all([paid(page), paid(other)]);
  expect(acts()).toEqual([send]);
  await page.reload();
  await paid(page);
  expect(await page.evaluate(() => localStorage.getItem("sent"))).toBe("{}");
});

test("the page sends an unsent transaction hash after a reload", async () => {
  const { page, choose, acts } = await open(assets.push);
  await holdBlocks();
  await page.route("**/confirm", () => undefined);
  await choose();
  await waitFor(() => acts().length === 1, { within: 20_000 });
  await page.locator("#step").filter({ hasText: en.handingIn }).waitFor();
  await page.unroute("**/confirm");
  const confirm = page.waitForRequest("**/confirm");
  await page.reload();
  expect((await confirm).postDataJSON()).toMatchObject({
    results: [{ data: [expect.stringMatching(/^0x[0-9a-f]{64}$/)] }],
  });
});

test("a page that is reloaded while the wallet sends offers no way to pay until the buyer showsStep that nothing was sent", async () => {
  const never = Promise.withResolvers<void>().promise;
  const { page, choose, acts } = await open(assets.push, { waits: { [send]: never } });
  await choose();
  await waitFor(() => acts().length === 1, { within: 20_000 });
  await page.reload();
  await asksNotToPay(page);
  expect(await listPaymentWays(page)).toEqual([]);
  await page.getByRole("button", { name: en.nothingSent }).click();
  await offersWallets(page);
  expect(await page.getByRole("alert").count()).toBe(0);
  await page.reload();
  await offersWallets(page);
});

test("the page does not store a declined push", async () => {
  const { page, choose } = await open(assets.push, { refuse: { [send]: [4001] } });
  await choose();
  await page.getByRole("alert").filter({ hasText: en.declined }).waitFor();
  await page.reload();
  await offersWallets(page);
  expect(await page.evaluate(() => localStorage.getItem("sent"))).toBe("{}");
});

test("the page reports a push that reverted, and the buyer can pay again", async () => {
  const { page, choose, acts, account } = await open(assets.push);
  await holdBlocks();
  await choose();
  await waitFor(() => acts().length === 1, { within: 20_000 });
  // The wallet's estimate of gas would fail otherwise, and nothing would be sent.
  await waitFor(async () => (await chain.client.getTxpoolStatus()).pending > 0, { within: 20_000 });
  await emptyAccount(account.address);
  await chain.client.setAutomine(true);
  await mine(chain);
  await page.getByRole("alert").filter({ hasText: en.refused }).waitFor();
  await offersWallets(page);
  await page.reload();
  await offersWallets(page);
});

test("the page deletes a stored transaction after the payment's lifetime and ignores those of other payments", async () => {
  const { page } = await open(assets.push);
  const keep = (base: string, inMs: number) =>
    page.evaluate(
      ([path, ms]) =>
        localStorage.setItem("sent", JSON.stringify({ [path]: { optionId: "opt", until: Date.now() + ms } })),
      [base, inMs] as const,
    );
  const { base } = JSON.parse((await page.locator("#data").textContent()) ?? "") as { base: string };
  for (const [of, inMs] of [
    [base, -1],
    ["/checkout/pay_other", 60_000],
  ] as const) {
    await keep(of, inMs);
    await page.reload();
    await offersWallets(page);
  }
  await keep(base, 60_000);
  await page.reload();
  await asksNotToPay(page);
});

test("a browser without storage can pay", async () => {
  const { page, link, choose } = await open(assets.push);
  await page.addInitScript(() => {
    Object.defineProperty(window, "localStorage", {
      get() {
        throw new Error("not allowed");
      },
    });
  });
  await page.goto(link);
  await choose();
  await paid(page);
});
