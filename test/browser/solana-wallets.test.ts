import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { signAsWallet } from "../../local/solana-buyer.ts";
import { startFleet } from "../support/fleet.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../support/test-solana.ts";
import { payByApp } from "./fake-wallet-app.ts";
import { none, openPage } from "./open-browser.ts";
import { scan } from "./scan-qr-code.ts";

// As on mainnet, a blockhash is valid for a minute: a slow browser takes seconds between two steps of a payment.
const solana = await startTestSolana({ slotMs: 400 });
const keys = await makeSolanaKeys(solana);
const change = { nonceAccounts: 3 };
const fleet = await startFleet({ solana: { chain: solana, keys, change }, workers: 1, ownUrl: true });

test("a Wallet Standard wallet signs but never sends, and the payment arrives on the chain", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const { baseUrl } = fleet.shop;
  const amount = { unit: "iso4217/USD", value: "250" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const { page, context, pageErrors } = await openPage(baseUrl);
  const calls: string[] = [];
  await context.exposeFunction("signSolana", (transaction: string) => {
    calls.push("sign");
    return signAsWallet(transaction, buyer);
  });
  await context.exposeFunction("sendSolana", () => void calls.push("send"));
  await page.addInitScript((address) => {
    type Hands = { signSolana: (text: string) => Promise<string>; sendSolana: () => Promise<void> };
    const hands = window as unknown as Hands;
    const account = { address, publicKey: new Uint8Array(32), chains: ["solana:localnet"], features: [] };
    const accounts: unknown[] = [];
    const wallet = {
      version: "1.0.0",
      name: "Sunny",
      icon: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'/>",
      chains: ["solana:localnet"],
      accounts,
      features: {
        "standard:connect": {
          async connect() {
            accounts[0] = account;
            return { accounts };
          },
        },
        "solana:signAndSendTransaction": { signAndSendTransaction: hands.sendSolana },
        "solana:signTransaction": {
          async signTransaction({ transaction }: { transaction: Uint8Array }) {
            const signed = await hands.signSolana(btoa(String.fromCharCode(...transaction)));
            return [{ signedTransaction: Uint8Array.from(atob(signed), (one) => one.charCodeAt(0)) }];
          },
        },
      },
    };
    const register = ({ register: add }: { register: (one: unknown) => void }) => add(wallet);
    addEventListener("wallet-standard:app-ready", (event) => register((event as CustomEvent).detail));
  }, buyer.address);
  await page.goto(`${baseUrl}/?pid=${id}`);
  await page.getByRole("button", { name: "Sunny" }).click();
  await page.getByRole("button", { name: "2.50 USDC on Local Solana" }).click();
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(calls).toEqual(["sign"]);
  // The treasury may already have paid the amount out.
  expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000_000n - 2_500_000n);
  expect(pageErrors).toEqual(none);
});

test("a wallet app that scans the code signs the service's transaction, and the open page shows every state to the end", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const { baseUrl } = fleet.shop;
  const amount = { unit: "iso4217/USD", value: "175" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const { page, pageErrors } = await openPage(baseUrl);
  await page.goto(`${baseUrl}/?pid=${id}`);
  const link = (await scan(page)) ?? "";
  const status = await payByApp(fleet.shop, link, `${solana.id}:${buyer.address}`, async ({ method, params }) => {
    expect(method).toBe("solana_signTransaction");
    return signAsWallet((params as [{ transaction: string }])[0].transaction, buyer);
  });
  expect(status).toBe("succeeded");
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000_000n - 1_750_000n);
  expect(pageErrors).toEqual(none);
});

test("a phone shows a plain link that opens the page in Phantom's browser", async () => {
  const { baseUrl } = fleet.shop;
  const amount = { unit: "iso4217/USD", value: "175" };
  const { id } = (await ask(fleet.shop, "POST", "/v1/payments", { amount })) as { id: string };
  const { page, context } = await openPage(baseUrl, { hasTouch: true, isMobile: true });
  await context.route("https://phantom.app/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>Phantom</title>" }),
  );
  await page.goto(`${baseUrl}/?pid=${id}`);
  const link = page.getByRole("link", { name: "Open in Phantom" });
  const target = `https://phantom.app/ul/browse/${encodeURIComponent(page.url())}?ref=${encodeURIComponent(baseUrl)}`;
  expect(await link.getAttribute("href")).toBe(target);
  await link.tap();
  await page.waitForURL(target);
});
