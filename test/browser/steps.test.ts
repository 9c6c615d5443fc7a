import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { newKey } from "../../ops/local/networks-document.ts";
import { askAnew, none } from "./browser.ts";
import { openKindsShop } from "./kinds-shop.ts";
import { listWays } from "./ways.ts";

const { assets, open } = await openKindsShop();

const [sign, send] = ["eth_signTypedData_v4", "eth_sendTransaction"] as const;
const turn = "wallet_switchEthereumChain";

test.each([
  ["a permit and a signature", assets.permit, [sign, sign]],
  ["approvals that have to be in a block, and a signature", assets.zeroFirst, [send, sign]],
  ["the buyer's own transaction", assets.push, [send]],
])("step by step: %s", async (_what, asset, expected) => {
  const { page, choose, acts, misdeeds } = await open(asset);
  await choose();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor({ timeout: 45_000 });
  expect(acts()).toEqual(expected);
  expect(misdeeds).toEqual(none);
});

test("declined at the second step: what was allowed is no payment, and the next try asks only for what is missing", async () => {
  const { page, choose, acts } = await open(assets.zeroFirst, { refuse: { [sign]: [4001] } });
  await choose();
  await page.getByRole("alert").filter({ hasText: "You declined in your wallet. Nothing was charged." }).waitFor();
  await choose();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor({ timeout: 45_000 });
  expect(acts()).toEqual([send, sign, sign]);
});

test("sent, and nobody could be told: the page says not to pay again, and finds the money itself", async () => {
  const { page, choose } = await open(assets.push);
  await page.route("**/confirm", (route) =>
    route.fulfill({ status: 400, contentType: "application/json", body: '{"code":"invalid_params","message":""}' }),
  );
  // Nor does the page hear of it at first.
  await page.route("**/status?*", (route) => route.abort());
  await askAnew(page);
  await choose();
  await page.locator("#step").filter({ hasText: "Your payment was sent" }).waitFor();
  expect(await page.getByText("Nothing was charged. You can try again").count()).toBe(0);
  expect(await page.getByText("Nothing has been charged yet.").isVisible()).toBe(false);
  expect(await listWays(page)).toEqual([]);
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor({ timeout: 45_000 });
});

test("sent, and in no block for long: the page says not to pay again, offers no other way, and finds the money", async () => {
  const { page, choose } = await open(assets.push);
  const news = { status: "requires_action", isFinal: false, version: 0, money: "none", leftMs: 60_000 };
  const body = JSON.stringify({ ...news, returnUrl: null, txId: null, txUrl: null });
  await page.route("**/confirm", (route) => route.fulfill({ status: 200, contentType: "application/json", body }));
  await page.route("**/status?*", (route) => route.abort());
  await askAnew(page);
  await choose();
  await page.locator("#step").filter({ hasText: en.sentUnclear }).waitFor();
  expect(await page.getByText("Nothing has been charged yet.").isVisible()).toBe(false);
  expect(await listWays(page)).toEqual([]);
  await page.unroute("**/confirm");
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor({ timeout: 45_000 });
});

test("a wallet that tells of an error may have sent all the same: the page does not say that nothing was charged, and finds the money", async () => {
  const { page, id, choose } = await open(assets.push, { fails: [send] });
  await page.route("**/status?*", (route) => route.abort());
  await askAnew(page);
  await choose();
  const problem = page.getByRole("alert");
  await problem.filter({ hasText: "If your wallet shows that you have sent some, do not pay again" }).waitFor();
  expect(await page.getByText(id, { exact: true }).isVisible()).toBe(true);
  for (const other of ["Nothing was charged", "Nothing has been charged yet."])
    expect(await page.getByText(other).isVisible()).toBe(false);
  expect(await listWays(page)).toEqual([]);
  await page.unroute("**/status?*");
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor({ timeout: 45_000 });
});

test("declined is declined also where the buyer's own transaction is the payment", async () => {
  const { page, choose } = await open(assets.push, { refuse: { [send]: [4001] } });
  await choose();
  await page.getByRole("alert").filter({ hasText: en.declined }).waitFor();
  await choose();
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor({ timeout: 45_000 });
});

test("a wallet whose owner turns to another network between two steps is asked to come back before the next one", async () => {
  const { page, choose, acts } = await open(assets.zeroFirst, { after: { [send]: ({ turnTo }) => turnTo(1) } });
  await choose();
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor({ timeout: 45_000 });
  expect(acts()).toEqual([send, turn, sign]);
});

test("a wallet whose owner turns to another account before it sends is asked for nothing, and the buyer is told", async () => {
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
