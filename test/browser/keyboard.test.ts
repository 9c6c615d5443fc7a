import type { Locator, Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { de } from "../../api/checkout/texts/de.ts";
import { en } from "../../api/checkout/texts/en.ts";
import { ask } from "../../local/buyer-client.ts";
import { newKey } from "../../local/networks-document.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { shopUrls } from "./browser-shop.ts";
import { installWallets, type WalletPlan } from "./fake-evm-wallets.ts";
import { freezeCountdown } from "./freeze-countdown.ts";
import { none, openPage } from "./open-browser.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
const beta = await fundBuyer(chain);
const poor = privateKeyToAccount(newKey().privateKey);

/** Opens the page of a new live payment in a browser with these wallets, and records pointer events and announcements. */
async function open(plans: WalletPlan[]) {
  const amount = { unit: "iso4217/USD", value: "1250" };
  const made = await ask(fleet.shop, "POST", "/v1/payments", { amount, checkout: shopUrls });
  const { id } = made as { id: string };
  const opened = await openPage(fleet.baseUrl);
  const { page, context } = opened;
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const calls = await installWallets(context, chain, plans);
  await context.route("https://shop.example.test/**", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  const [announced, titles, pointed]: [string[], string[], string[]] = [[], [], []];
  await page.exposeFunction("announced", (text: string) => void (text && announced.push(text)));
  await page.exposeFunction("titled", (text: string) => void (text !== titles.at(-1) && titles.push(text)));
  await page.exposeFunction("pointed", (event: string) => void pointed.push(event));
  await page.addInitScript(() => {
    const recorder = window as unknown as Record<"announced" | "titled" | "pointed", (text: string) => void>;
    for (const name of ["pointerdown", "mousedown", "touchstart"])
      addEventListener(name, () => recorder.pointed(name), true);
    addEventListener("DOMContentLoaded", () => {
      recorder.titled(document.title);
      new MutationObserver(() => recorder.titled(document.title)).observe(document.head, {
        subtree: true,
        childList: true,
      });
      // What a screen reader announces by itself: the status and the alerts.
      for (const one of document.querySelectorAll("[role=status], [role=alert]"))
        new MutationObserver(() => recorder.announced(one.textContent ?? "")).observe(one, {
          childList: true,
          subtree: true,
        });
    });
  });
  await freezeCountdown(page);
  const link = `${fleet.baseUrl}/?pid=${id}`;
  await page.goto(link);
  return { ...opened, id, link, calls, announced, titles, pointed };
}

/** Moves the focus to an element by the Tab key and presses Enter. */
async function press(page: Page, one: Locator): Promise<void> {
  await one.waitFor();
  for (let tabs = 0; tabs < 60; tabs += 1) {
    if (await one.evaluate((element) => element === document.activeElement)) return page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
  }
  throw new Error(`the keyboard does not reach ${one}`);
}

const focused = (page: Page): Promise<string | undefined> => page.evaluate(() => document.activeElement?.id);

test("a buyer can copy the link, choose a language, decline, pay, stop the countdown and return to the shop by keyboard alone", async () => {
  const declined = { eth_requestAccounts: [4001], wallet_switchEthereumChain: [4001], eth_signTypedData_v4: [4001] };
  const plans = [
    { name: "Alpha", account: poor, refuse: { eth_requestAccounts: [4001] } },
    { name: "Beta", account: beta, chainId: 1, refuse: declined },
  ];
  const { page, id, link, calls, pageErrors, pointed } = await open(plans);
  const button = (name: string | RegExp) => page.getByRole("button", { name });
  await press(page, button(en.copy));
  await page.getByText(en.copied).first().waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(link);
  await press(page, page.locator("footer summary"));
  await press(page, page.getByRole("link", { name: de.languageName }));
  await page.locator("html[lang=de]").waitFor();

  const isDeclined = async (): Promise<void> => {
    await page.getByRole("alert").filter({ hasText: de.declined }).waitFor();
    // The focus is where the next try begins.
    expect(await page.evaluate(() => document.activeElement?.closest("#wallets") !== null)).toBe(true);
  };
  await press(page, button("Alpha"));
  await isDeclined();
  await press(page, button("Beta"));
  await isDeclined();
  for (const _step of ["network", "signature"]) {
    await press(page, button("Beta"));
    await press(page, button("12,50 USDC"));
    await isDeclined();
  }
  await press(page, button("Beta"));
  await press(page, button("12,50 USDC"));
  await page.getByRole("heading", { name: de.succeededTitle, level: 1 }).waitFor();
  await press(page, button(de.stay));
  await page.getByText(de.staying).waitFor();
  expect(await focused(page)).toBe("back");
  await page.waitForTimeout(4_000);
  expect(new URL(page.url()).searchParams.get("pid")).toBe(id);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${shopUrls.successUrl}&payment_id=${id}`);

  expect(pointed).toEqual([]);
  expect(calls.filter(({ wallet }) => wallet === "Hostile")).toEqual([]);
  expect(calls.filter(({ wallet }) => wallet === "Alpha").map(({ method }) => method)).toEqual(["eth_requestAccounts"]);
  const signed = calls.filter(({ method }) => method === "eth_signTypedData_v4").map(({ wallet }) => wallet);
  expect(signed).toEqual(["Beta", "Beta"]);
  const paid = await transfersTo(chain, chain.keys.treasury.address);
  expect(paid.map(({ args }) => args.from)).toEqual([beta.address]);
  expect(pageErrors).toEqual(none);
});

test("a payment with a wallet in the page is announced in five sentences, each once and in order, with matching title and focus", async () => {
  const { page, announced, titles } = await open([{ name: "Beta", account: beta }]);
  await press(page, page.getByRole("button", { name: en.copy }));
  await page.getByText(en.copied).first().waitFor();
  onTestFinished(() => chain.client.setAutomine(true));
  await chain.client.setAutomine(false);
  await press(page, page.getByRole("button", { name: "Beta" }));
  await press(page, page.getByRole("button", { name: "12.50 USDC" }));
  await page.getByRole("heading", { name: en.processingTitle, level: 1 }).waitFor();
  expect(await focused(page)).toBe("processing-title");
  await chain.client.setAutomine(true);
  await mine(chain, 2);
  await page.getByRole("heading", { name: en.succeededTitle, level: 1 }).waitFor();
  expect(await focused(page)).toBe("succeeded-title");
  expect(announced).toEqual([
    en.copied,
    en.connecting.replace("{wallet}", "Beta"),
    en.approve.replace("{wallet}", "Beta"),
    `${en.processingTitle} ${en.processingText}`,
    `${en.succeededTitle} ${en.leaving.replace("{shop}", "Corner shop").replace("{seconds}", "3")}`,
  ]);
  expect(titles).toEqual(
    [en.payTitle.replace("{amount}", "$12.50"), en.processingTitle, en.succeededTitle].map(
      (one) => `${one} – Corner shop`,
    ),
  );
});
