import { expect, test } from "vitest";
import { openShop } from "./browser-shop.ts";
import { openPage } from "./open-browser.ts";

const { api, pay, linkOf } = await openShop();
const phone = { hasTouch: true, isMobile: true };

async function open(options: object, wallets = 0) {
  const { page, context } = await openPage(api.url, options);
  await context.addInitScript((count) => {
    for (let at = 0; at < count; at += 1) {
      const detail = { info: { uuid: `uuid-${at}`, name: `Own ${at}` }, provider: { request: async () => [] } };
      const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
      addEventListener("eip6963:requestProvider", announce);
    }
  }, wallets);
  await page.goto(linkOf(await pay()));
  const top = async (text: string) => (await page.getByText(text).boundingBox())?.y ?? Number.NaN;
  const isShown = (text: string) => page.getByText(text).isVisible();
  return { page, top, isShown };
}

const toScan = "Scan this code with your wallet app or your phone’s camera, then approve the payment in the app.";
const elsewhere = "Is your wallet on another device? Scan this code with it, then approve the payment there.";

test("a phone shows its wallet links first, then the payment link, and last the code for other devices", async () => {
  const { page, top, isShown } = await open(phone);
  const places = ["Open in MetaMask", "copy this link", "What is a wallet", elsewhere];
  const tops = await Promise.all(places.map(top));
  expect(tops).toEqual(tops.toSorted((a, b) => a - b));
  expect(await isShown(toScan)).toBe(false);
  // Longer than the page searches for wallets.
  await page.waitForTimeout(1_500);
  expect(await isShown("No wallet was found in this browser.")).toBe(false);
});

test("a computer shows its own wallets first, then the code to scan with a phone", async () => {
  const { page, top, isShown } = await open({ viewport: { width: 1_280, height: 800 } });
  await page.getByText("No wallet was found in this browser. Use your phone instead").waitFor();
  expect(await top("Pay in this browser")).toBeLessThan(await top(toScan));
  expect(await top(toScan)).toBeLessThan(await top("copy this link"));
  for (const text of [elsewhere, "Open in MetaMask"]) expect(await isShown(text)).toBe(false);
});

test("a wallet's own browser shows its button in place of the wallet links, without a layout shift", async () => {
  const links = await open(phone);
  const place = await links.top("Pay on this phone");
  const below = await links.top("copy this link");
  const { page, top, isShown } = await open(phone, 1);
  await page.getByRole("button", { name: "Own 0" }).waitFor();
  expect(await isShown("Open in MetaMask")).toBe(false);
  expect(await top("Pay in this browser")).toBe(place);
  expect(await top("copy this link")).toBe(below);
});
