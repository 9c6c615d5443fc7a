import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { languages } from "../../api/checkout/texts/languages.ts";
import { createPayment } from "../../local/buyer-client.ts";
import { fundBuyer, startChain, transfersTo } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { payByApp } from "./fake-wallet-app.ts";
import { none, openPage } from "./open-browser.ts";
import { scan } from "./scan-qr-code.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1, ownUrl: true });
// All tests share one payment, and may take a slow machine longer than the usual five minutes. The time left is less than an
// hour, so that the timer shows minutes and seconds.
const expiresAt = new Date(Date.now() + 3_000_000);
const id = await createPayment(fleet.shop, { referenceId: "order", cents: "1250", expiresAt });
const payment = `${fleet.baseUrl}/?pid=${id}`;

const screens = [
  ["light", { colorScheme: "light" }],
  ["dark", { colorScheme: "dark" }],
  ["forced colours", { forcedColors: "active", colorScheme: "dark" }],
  ["320 pixels", { viewport: { width: 320, height: 640 } }],
] as const;

test.each(
  screens.flatMap(([name, screen]) => [1, 2].map((deviceScaleFactor) => ({ name, screen, deviceScaleFactor }))),
)(
  "the code scans as the payment link: $name, device scale factor $deviceScaleFactor",
  async ({ screen, deviceScaleFactor }) => {
    const { page } = await openPage(fleet.baseUrl, { ...screen, deviceScaleFactor });
    await page.goto(payment);
    expect(await scan(page)).toBe(payment);
    expect(await page.getByRole("img", { name: "QR code of the payment link" }).isVisible()).toBe(true);
  },
);

test("instructions above the code and a copyable link below it are shown in every language", async () => {
  const { page } = await openPage(fleet.baseUrl);
  for (const { tag, texts } of languages) {
    await page.goto(`${payment}&lang=${tag}`);
    const top = async (one: Locator): Promise<number> => (await one.boundingBox())?.y ?? Number.NaN;
    const code = page.getByRole("img", { name: texts.qrName, exact: true });
    const link = page.getByRole("textbox", { name: texts.linkLabel, exact: true });
    const copy = page.getByRole("button", { name: texts.copy, exact: true });
    expect({ tag, counts: [await code.count(), await link.count(), await copy.count()] }).toEqual({
      tag,
      counts: [1, 1, 1],
    });
    expect(await top(page.getByText(texts.scan))).toBeLessThan(await top(code));
    expect(await top(code)).toBeLessThan(await top(link));
    expect(await link.inputValue()).toBe(payment);
    expect(await link.getAttribute("readonly")).toBe("");
    // The remaining time is text, too, and not only a colour or a bar.
    const [before, after] = texts.timeLeft.split("{time}") as [string, string];
    const left = await page.locator("p", { has: page.getByRole("timer") }).textContent();
    expect(left?.startsWith(before) && left.endsWith(after)).toBe(true);
    expect(left?.slice(before.length, left.length - after.length)).toMatch(/^\d+:\d\d$/);
  }
});

test("a wallet app that scans the code pays the link, and the open page shows every state to the end", async () => {
  const { page, pageErrors } = await openPage(fleet.baseUrl);
  await page.goto(payment);
  const buyer = await fundBuyer(chain);
  const link = (await scan(page)) ?? "";
  const status = await payByApp(fleet.shop, link, `${chain.id}:${buyer.address}`, async ({ method, params }) => {
    expect(method).toBe("eth_signTypedData_v4");
    const { types, ...rest } = JSON.parse(params[1] as string);
    const { EIP712Domain: _, ...own } = types;
    return buyer.signTypedData({ ...rest, types: own });
  });
  expect(status).toBe("succeeded");
  await page.getByRole("heading", { name: "Paid", level: 1 }).waitFor();
  expect(await transfersTo(chain, chain.keys.treasury.address)).toMatchObject([
    { args: { from: buyer.address, value: 12_500_000n } },
  ]);
  expect(pageErrors).toEqual(none);
});
