import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { fundBuyer, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { installWallets, type WalletPlan } from "./fake-evm-wallets.ts";
import { none, openPage } from "./open-browser.ts";

const chain = await startChain();
const addEthereumChain = { rpc: ["https://rpc.public.example.test/"], explorer: "https://explorer.example.test" };
const fleet = await startFleet({ chain, workers: 1, ownUrl: true, change: { addEthereumChain } });
const beta = await fundBuyer(chain);

/** Opens the page of a new live payment in a browser whose only wallet is on another network. */
async function open(plan: Partial<WalletPlan>) {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const opened = await openPage(fleet.baseUrl);
  const calls = await installWallets(opened.context, chain, [{ name: "Beta", account: beta, chainId: 1, ...plan }]);
  await opened.page.goto(`${fleet.baseUrl}/?pid=${id}`);
  const { page } = opened;
  return {
    ...opened,
    /** Chooses the wallet and the option. */
    async tryToPay() {
      await page.getByRole("button", { name: "Beta" }).click();
      await page.getByRole("button", { name: "12.50 USDC" }).click();
    },
    showsAlert: (text: string) => page.getByRole("alert").filter({ hasText: text }).waitFor(),
    paid: () => page.getByRole("heading", { name: "Paid", level: 1 }).waitFor(),
    countCalls: (method: string) => calls.filter((call) => call.method === method).length,
  };
}

test.each(["by code", "wrapped"] as const)(
  "a wallet that does not know the network, and reports that %s, adds the network and pays",
  async (lacks) => {
    const before = (await transfersTo(chain, chain.keys.treasury.address)).length;
    const added: unknown[] = [];
    const { tryToPay, paid, pageErrors } = await open({ lacks, added });
    await tryToPay();
    await paid();
    expect(added).toEqual([
      {
        chainId: "0x7a69",
        chainName: "Local",
        rpcUrls: ["https://rpc.public.example.test/"],
        blockExplorerUrls: ["https://explorer.example.test/"],
        nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
      },
    ]);
    expect((await transfersTo(chain, chain.keys.treasury.address)).length).toBe(before + 1);
    expect(pageErrors).toEqual(none);
  },
);

test("a buyer who adds the network but cancels the switch, without an error from the wallet, has signed nothing and can retry", async () => {
  const { tryToPay, showsAlert, paid, countCalls } = await open({ lacks: "by code", cancels: 1 });
  await tryToPay();
  await showsAlert("Beta has not changed to Local. Change it there, then try again. Nothing was charged.");
  expect(countCalls("eth_signTypedData_v4")).toBe(0);
  await tryToPay();
  await paid();
  // The wallet knows the network by now.
  expect(countCalls("wallet_addEthereumChain")).toBe(1);
});

test("a buyer who declines to add the network sees that nothing was charged and can retry", async () => {
  const refuse = { wallet_addEthereumChain: [4001] };
  const { tryToPay, showsAlert, paid, countCalls } = await open({ lacks: "wrapped", refuse });
  await tryToPay();
  await showsAlert("You declined in your wallet. Nothing was charged.");
  expect(countCalls("eth_signTypedData_v4")).toBe(0);
  await tryToPay();
  await paid();
});

test("a buyer who has paid sees a link to the transaction where the networks file names an explorer", async () => {
  const { page, tryToPay, paid } = await open({});
  await tryToPay();
  await paid();
  const link = page.getByRole("link", { name: /^0x[0-9a-f]{64}$/ });
  for (const when of ["at the end", "after a reload"]) {
    if (when === "after a reload") await page.reload();
    await page.getByText("Details", { exact: true }).click();
    const expected = `https://explorer.example.test/tx/${await link.textContent()}`;
    expect({ when, href: await link.getAttribute("href") }).toEqual({ when, href: expected });
  }
});

test("a page contains only the public data of a network, and none of the service's own endpoints", async () => {
  const { page, tryToPay, paid } = await open({ lacks: "by code" });
  const answers: Promise<string>[] = [];
  page.on("response", (response) => void answers.push(response.text().catch(() => "")));
  await page.reload();
  await tryToPay();
  await paid();
  const everything = (await Promise.all(answers)).join("\n");
  expect(everything).toContain("https://rpc.public.example.test/");
  expect(everything).toContain('"status":"succeeded"');
  for (const hidden of [chain.url, new URL(chain.url).host, "local-0"]) expect(everything).not.toContain(hidden);
});
