import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { newKey } from "../../local/networks-document.ts";
import { listPaymentWays } from "./list-payment-methods.ts";
import { none, triggerPoll } from "./open-browser.ts";
import { openTokenKindsShop } from "./token-kinds-shop.ts";

const { assets, open } = await openTokenKindsShop();

const [sign, send] = ["eth_signTypedData_v4", "eth_sendTransaction"] as const;
const switchNetwork = "wallet_switchEthereumChain";

test.each([
  ["a permit and a signature", assets.permit, [sign, sign]],
  ["mined approvals and a signature", assets.zeroFirst, [send, sign]],
  ["the buyer's own transaction", assets.push, [send]],
])("a wallet pays in steps by %s", async (_what, asset, expected) => {
  const { page, choose, acts, pageErrors } = await open(asset);
  await choose();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(acts()).toEqual(expected);
  expect(pageErrors).toEqual(none);
});

test("a buyer who declines the second step has paid nothing, and the retry requests only the missing steps", async () => {
  const { page, choose, acts } = await open(assets.zeroFirst, { refuse: { [sign]: [4001] } });
  await choose();
  await page.getByRole("alert").filter({ hasText: "You declined in your wallet. Nothing was charged." }).waitFor();
  await choose();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(acts()).toEqual([send, sign, sign]);
});

test("the page says not to pay again when it cannot send the confirm of a sent transaction, and the service finds the money", async () => {
  const { page, choose } = await open(assets.push);
  await page.route("**/confirm", (route) =>
    route.fulfill({ status: 400, contentType: "application/json", body: '{"code":"invalid_params","message":""}' }),
  );
  // The page's polls fail at first, too.
  await page.route("**/status?*", (route) => route.abort());
  await triggerPoll(page);
  await choose();
  await page.locator("#step").filter({ hasText: "Your payment was sent" }).waitFor();
  expect(await page.getByText("Nothing was charged. You can try again").count()).toBe(0);
  expect(await page.getByText("Nothing has been charged yet.").isVisible()).toBe(false);
  expect(await listPaymentWays(page)).toEqual([]);
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
});

test("the page of a transaction that stays unmined says not to pay again, offers no other way to pay, and the service finds the money", async () => {
  const { page, choose } = await open(assets.push);
  const news = { status: "requires_action", isFinal: false, version: 0, money: "none", leftMs: 60_000 };
  const body = JSON.stringify({ ...news, returnUrl: null, txId: null, txUrl: null });
  await page.route("**/confirm", (route) => route.fulfill({ status: 200, contentType: "application/json", body }));
  await page.route("**/status?*", (route) => route.abort());
  await triggerPoll(page);
  await choose();
  await page.locator("#step").filter({ hasText: en.sentUnclear }).waitFor();
  expect(await page.getByText("Nothing has been charged yet.").isVisible()).toBe(false);
  expect(await listPaymentWays(page)).toEqual([]);
  await page.unroute("**/confirm");
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
});

test("the page does not say that nothing was charged when a wallet reports an error after sending, and the service finds the money", async () => {
  const { page, id, choose } = await open(assets.push, { fails: [send] });
  await page.route("**/status?*", (route) => route.abort());
  await triggerPoll(page);
  await choose();
  const problem = page.getByRole("alert");
  await problem.filter({ hasText: "If your wallet shows that you have sent some, do not pay again" }).waitFor();
  expect(await page.getByText(id, { exact: true }).isVisible()).toBe(true);
  for (const other of ["Nothing was charged", "Nothing has been charged yet."])
    expect(await page.getByText(other).isVisible()).toBe(false);
  expect(await listPaymentWays(page)).toEqual([]);
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
});

test("a declined push counts as declined", async () => {
  const { page, choose } = await open(assets.push, { refuse: { [send]: [4001] } });
  await choose();
  await page.getByRole("alert").filter({ hasText: en.declined }).waitFor();
  await choose();
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
});

test("the page asks a wallet to switch back when its owner changes the network between two steps", async () => {
  const { page, choose, acts } = await open(assets.zeroFirst, { after: { [send]: ({ switchTo }) => switchTo(1) } });
  await choose();
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
  expect(acts()).toEqual([send, switchNetwork, sign]);
});

test("the page requests nothing and informs the buyer when the wallet's owner changes the account before the send", async () => {
  const { page, choose, acts, plan } = await open(assets.push, {
    after: { eth_chainId: () => Object.assign(plan, { account: privateKeyToAccount(newKey().privateKey) }) },
  });
  await choose();
  await page
    .getByRole("alert")
    .filter({ hasText: en.wrongAccount.replace("{wallet}", "Beta") })
    .waitFor();
  expect(acts()).toEqual([]);
  expect(await page.getByRole("button", { name: "Beta" }).isVisible()).toBe(true);
});
