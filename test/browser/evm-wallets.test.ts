import type { Page, Route } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { openDb } from "../../db/open.ts";
import { ask, pay } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { addPolicy, removePolicy } from "../../payments/buyer-data/collection-policies.ts";
import { fundBuyer, mine, sendUsdc, startChain, transfersTo, usdcBalance } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { testActor } from "../support/test-actor.ts";
import { waitFor } from "../support/wait-for.ts";
import { fillIn, send } from "./data-form-helpers.ts";
import { installWallets, type WalletPlan } from "./fake-evm-wallets.ts";
import { listPaymentWays } from "./list-payment-methods.ts";
import { none, openPage, triggerPoll } from "./open-browser.ts";
import { announceWallet } from "./wallet-fakes.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
const beta = await fundBuyer(chain);
const poor = privateKeyToAccount(newKey().privateKey);

/** Opens the page of a new live payment in a browser with these wallets; `more` is appended to its URL. */
async function open(plans: WalletPlan[], more = "") {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const opened = await openPage(fleet.baseUrl);
  const calls = await installWallets(opened.context, chain, plans);
  const link = `${fleet.baseUrl}/?pid=${id}${more}`;
  await opened.page.goto(link);
  return { ...opened, id, link, calls };
}

const alert = (page: Page, text: string) => page.getByRole("alert").filter({ hasText: text }).waitFor();
const paid = (page: Page) => page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();

/** Records the bodies of the confirms that a page sends from now on. */
function listConfirms(page: Page): string[] {
  const bodies: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/confirm")) bodies.push(request.postData() ?? "");
  });
  return bodies;
}

test("a buyer can retry after declining any step, and the page says that nothing was charged", async () => {
  const refuse = {
    eth_requestAccounts: [4001, -32002],
    wallet_switchEthereumChain: [4001, 4902],
    eth_signTypedData_v4: [4001, 4100],
  };
  const { page, pageErrors } = await open([{ name: "Beta", account: beta, chainId: 1, refuse }]);
  const messages = [
    "You declined in your wallet. Nothing was charged.",
    "Beta still has a question open.",
    "You declined in your wallet. Nothing was charged.",
    "Beta has not changed to",
    "You declined in your wallet. Nothing was charged.",
    "Beta could not do it. Nothing was charged.",
  ];
  for (const [tries, message] of messages.entries()) {
    await page.getByRole("button", { name: "Beta" }).click();
    if (tries >= 2) await page.getByRole("button", { name: "12.50 USDC" }).click();
    await alert(page, message);
  }
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await paid(page);
  expect(pageErrors).toEqual(none);
});

test("the page says that an empty wallet cannot pay, and the buyer can choose another one", async () => {
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

test("the page offers late wallets, hides wallets with a shared identity, and runs no code of names and icons", async () => {
  const evil = `</script><img src=x onerror="document.title='owned'">`;
  const script = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg"><script>top.document.title='owned'</script></svg>`;
  const { page, pageErrors } = await open([
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
  // A wallet that comes even later is offered as well.
  await announceWallet(page);
  expect(pageErrors).toEqual(none);
});

test("a wallet for both chain families is listed twice under one name, each time with its networks", async () => {
  const { page, link } = await open([
    { name: "Both", account: poor },
    { name: "Beta", account: beta },
  ]);
  const mainnet = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
  await page.route("**/?pid=*", async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace('"networks":[', `"networks":[["${mainnet}","Solana"],`);
    await route.fulfill({ response, body });
  });
  await page.addInitScript(() => {
    const feature = { connect: async () => ({ accounts: [] }), signTransaction: async () => [] };
    const features = { "standard:connect": feature, "solana:signTransaction": feature };
    const known = { version: "1.0.0", name: "Both", icon: "data:image/svg+xml,<svg/>", accounts: [], features };
    const wallet = { ...known, chains: ["solana:mainnet"] };
    addEventListener("wallet-standard:app-ready", (event) => (event as CustomEvent).detail.register(wallet));
  });
  await page.goto(link);
  const { networks } = JSON.parse((await page.locator("#data").textContent()) ?? "");
  await page.getByRole("button", { name: "Both (Solana)" }).waitFor();
  const names = await page.locator("#wallets button").allTextContents();
  expect(names.toSorted()).toEqual(["Beta", `Both (${networks[1][1]})`, "Both (Solana)"].toSorted());
});

test("window.ethereum is offered only while no wallet has announced itself within a second", async () => {
  const { page, calls } = await open([]);
  const ethereumButton = page.getByRole("button", { name: "Ethereum" });
  const age = () => page.evaluate(() => performance.now());
  while ((await age()) < 700) expect((await ethereumButton.count()) > 0 && (await age()) < 1_000).toBe(false);
  await ethereumButton.waitFor();
  await announceWallet(page);
  expect(await page.locator("#wallets button").allTextContents()).toEqual(["Orange Wallet"]);
  const other = await open([{ name: "Beta", account: beta }]);
  await other.page.waitForTimeout(1_500);
  expect(await other.page.locator("#wallets button").allTextContents()).toEqual(["Beta"]);
  expect([...calls, ...other.calls]).toEqual([]);
});

test("the second of two tabs that sign with two wallets is refused and says that the payment is being paid", async () => {
  const before = (await transfersTo(chain, chain.keys.treasury.address)).length;
  const [first, second] = [await fundBuyer(chain), await fundBuyer(chain)];
  const { page, context, link } = await open([
    { name: "First", account: first },
    { name: "Second", account: second },
  ]);
  const tab = await context.newPage();
  await tab.goto(link);
  const choose = async (where: Page, wallet: string) => {
    await where.getByRole("button", { name: wallet }).click();
    await where.getByRole("button", { name: "12.50 USDC" }).waitFor();
  };
  await choose(page, "First");
  await choose(tab, "Second");
  // The second tab does not learn of the first in time.
  await tab.route("**/status?*", () => undefined);
  await triggerPoll(tab);
  // No block ends the payment before the second confirm.
  onTestFinished(() => chain.client.setAutomine(true));
  await chain.client.setAutomine(false);
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await page.getByRole("heading", { name: en.processingTitle, level: 1 }).waitFor();
  const confirmed = tab.waitForResponse("**/confirm");
  await tab.getByRole("button", { name: "12.50 USDC" }).click();
  const refused = await confirmed;
  expect({ status: refused.status(), ...(await refused.json()) }).toMatchObject({ status: 400, code: "invalid_state" });
  await tab.locator("#step").filter({ hasText: en.alreadyPaying }).waitFor();
  expect(await listPaymentWays(tab)).toEqual([]);
  await tab.unroute("**/status?*");
  await tab.evaluate("void dispatchEvent(new Event('focus'))");
  await tab.getByRole("heading", { name: en.processingTitle, level: 1 }).waitFor();
  await chain.client.setAutomine(true);
  await mine(chain, 2);
  await Promise.all([paid(page), paid(tab)]);
  const transfers = (await transfersTo(chain, chain.keys.treasury.address)).slice(before);
  expect(transfers.map(({ args }) => args.from)).toEqual([first.address]);
});

test("a payment that is paid elsewhere while a wallet is open is shown as paid at once, and the wallet's later result is not sent", async () => {
  const wallet = Promise.withResolvers<void>();
  const plan = { name: "Beta", account: beta, waits: { eth_signTypedData_v4: wallet.promise } };
  const { page, id, calls } = await open([plan]);
  const confirms = listConfirms(page);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await waitFor(() => calls.some(({ method }) => method === "eth_signTypedData_v4"), { within: 20_000 });
  await pay(fleet.shop, id, await fundBuyer(chain), chain.id);
  await paid(page);
  wallet.resolve();
  await page.waitForTimeout(500);
  expect(confirms).toHaveLength(0);
});

test("a buyer can pay with another wallet when one never responds, and the first wallet's late result is not sent", async () => {
  const wallet = Promise.withResolvers<void>();
  const waitsAt = (method: string) => ({ [method]: wallet.promise });
  const { page, calls } = await open([
    { name: "Never", account: beta, waits: waitsAt("eth_requestAccounts") },
    { name: "Elsewhere", account: beta, chainId: 1, waits: waitsAt("wallet_switchEthereumChain") },
    { name: "Silent", account: await fundBuyer(chain), waits: waitsAt("eth_signTypedData_v4") },
    { name: "Beta", account: beta },
  ]);
  const confirms = listConfirms(page);
  const showsStep = (text: string) => page.locator("#step").filter({ hasText: text }).waitFor();
  const choose = async (name: string) => {
    await page.getByRole("button", { name }).click();
    if (name !== "Never") await page.getByRole("button", { name: "12.50 USDC" }).click();
  };
  for (const [name, text] of [
    ["Never", "Open Never and answer its question."],
    ["Elsewhere", "Allow Elsewhere to change to"],
    ["Silent", "Approve the payment in Silent."],
  ] as const) {
    await choose(name);
    await showsStep(text);
    await page.getByRole("button", { name: "Choose another wallet" }).click();
  }
  wallet.resolve();
  await choose("Beta");
  await paid(page);
  // The page repeats a confirm that the server has held for 25 s.
  expect(new Set(confirms).size).toBe(1);
  expect(calls.filter(({ method }) => method.startsWith("eth_sign")).map(({ wallet: name }) => name)).toEqual([
    "Silent",
    "Beta",
  ]);
});

test("the page waits for a slow verification, then shows the refusal and lets the buyer retry", async () => {
  const account = await fundBuyer(chain);
  const { page } = await open([{ name: "Gamma", account }]);
  const worker = fleet.workers[0]?.pid ?? 0;
  onTestFinished(() => void process.kill(worker, "SIGCONT"));
  await page.getByRole("button", { name: "Gamma" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).waitFor();
  process.kill(worker, "SIGSTOP");
  let confirms = 0;
  await page.route("**/confirm", async (route) => {
    confirms += 1;
    if (confirms > 1) return route.continue();
    // The first confirm is answered like one that was held for the maximum time.
    await route.fetch({ timeout: 1_000 }).catch(() => undefined);
    const status = new URL(route.request().url().replace("/confirm", "/status")).href;
    return route.fulfill({ response: await route.fetch({ url: status, method: "GET" }) });
  });
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await waitFor(() => confirms === 2, { within: 20_000 });
  // The buyer's money is gone when the service verifies it.
  await sendUsdc(chain, account, poor.address, await usdcBalance(chain, account.address));
  expect(await page.locator("#step").textContent()).toBe(en.handingIn);
  process.kill(worker, "SIGCONT");
  await alert(page, en.refused);
  expect(await page.getByRole("button", { name: "Gamma" }).isVisible()).toBe(true);
});

test("the page does not say that nothing was charged when the server is unreachable after the wallet has signed", async () => {
  const { page } = await open([{ name: "Beta", account: beta }]);
  await page.clock.install();
  await page.route("**/confirm", (route) => route.abort());
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await page.locator("#step").filter({ hasText: en.handingIn }).waitFor();
  await waitFor(
    async () => {
      await page.clock.runFor(1_000);
      return (await page.locator("#step").textContent()) === en.serverErrorText;
    },
    // The page gives up after thirty requests, a second of its clock apart.
    { within: 100_000 },
  );
  expect(await listPaymentWays(page)).toEqual([]);
});

test("a lost response to the confirm is harmless: the repeated confirm is the same payment", async () => {
  const { page } = await open([{ name: "Beta", account: beta }]);
  await page.getByRole("button", { name: "Beta" }).click();
  const option = page.getByRole("button", { name: "12.50 USDC" });
  await option.waitFor();
  const loseResponse = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route("**/confirm", loseResponse, { times: 1 });
  await option.click();
  await paid(page);
});

test("a shop that requires buyer data shows the form in between and returns to the payment", async () => {
  const db = openDb(fleet.databaseUrl, { max: 1, applicationName: "pay-test" });
  const { merchantId } = fleet.shop.caller;
  const policy = { merchantId, asset: null, unit: null, minimum: null };
  const { id: policyId } = await addPolicy({ db, now: () => new Date() }, { ...policy, actor: testActor });
  const wishes = "&lang=en&theme=dark&returnUrl=metamask%3A%2F%2Fdone";
  const { page, link, pageErrors } = await open([{ name: "Beta", account: beta }], wishes);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await page.getByText("Corner shop has to know who pays.").first().waitFor();
  await page.getByRole("button", { name: "Give my details" }).click();
  await fillIn({ page });
  await send({ page });
  await page.waitForURL(link);
  await page.getByRole("button", { name: "Beta" }).click();
  await page.getByRole("button", { name: "12.50 USDC" }).click();
  await paid(page);
  expect(pageErrors).toEqual(none);
  await removePolicy({ db, now: () => new Date() }, { actor: testActor, id: policyId });
  await db.destroy();
});
