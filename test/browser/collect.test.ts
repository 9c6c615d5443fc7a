import type { Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../ops/local/networks-document.ts";
import { readCollected } from "../../payments/collect.ts";
import { none } from "./browser.ts";
import { done, fillIn, openAskingShop, send } from "./collect-form.ts";

const buyer = privateKeyToAccount(newKey().privateKey);
const { api, merchant, ask, open } = await openAskingShop(`eip155:31337:${buyer.address}`);

test("by keyboard: what is given arrives sealed, and confirm needs no data any more", async () => {
  const { id, option, url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  await send(opened);
  await done(opened);
  expect(await opened.page.evaluate(() => document.activeElement?.id)).toBe("done-title");
  expect(await readCollected(api.deps, id)).toMatchObject([
    {
      fields: [
        { id: "fullName", value: "Zoë Ångström-Quux" },
        { id: "dob", value: "1990-02-28" },
        { id: "porCountry", value: "SE" },
        { id: "porAddress", value: "Uppsala 17" },
        { id: "tosConfirmed", value: "true" },
      ],
    },
  ]);
  const { types, ...rest } = JSON.parse(option.actions[0].data.params[1]);
  const { EIP712Domain: _, ...own } = types;
  const results = [{ type: "walletRpc", data: [await buyer.signTypedData({ ...rest, types: own })] }];
  const confirmed = await api.post(`/v1/gateway/payment/${id}/confirm?maxPollMs=1`, merchant.wallet, {
    optionId: option.id,
    results,
  });
  expect(confirmed.status).toBe(200);
  for (const secret of ["Ångström", "1990-02-28", "Uppsala"]) expect(api.lines.join("\n")).not.toContain(secret);
  expect(opened.misdeeds).toEqual(none);
});

test("what is wrong is told above and at the field, and nothing is sent", async () => {
  const { id, url } = await ask();
  const opened = await open(url);
  const { page } = opened;
  await send(opened);
  const summary = page.getByRole("alert").filter({ hasText: "Please look at this again" });
  await summary.waitFor();
  expect(await summary.getByRole("link").allTextContents()).toEqual([
    "Enter your full name, at most 200 characters",
    "Enter your date of birth: day, month and year with four digits",
    "Choose a country",
    "Enter the address, at most 200 characters",
    "Tick the box to go on",
  ]);
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("summary");
  await summary.getByRole("link").first().press("Enter");
  expect(await page.evaluate(() => document.activeElement?.id)).toBe("fullName");
  expect(await page.getByLabel("Full name").getAttribute("aria-invalid")).toBe("true");
  await fillIn(opened);
  await page.getByLabel("Year").fill("2999");
  await send(opened);
  // The server knows what day it is.
  await expect
    .poll(() => summary.getByRole("link").allTextContents())
    .toEqual(["Enter your date of birth: day, month and year with four digits"]);
  expect(await readCollected(api.deps, id)).toEqual([]);
});

const who = { fullName: "Zoë Quux", dob: "1990-02-28", pobCountry: "SE", pobAddress: "Malmö", shoeSize: "43" };
const utf8 = Buffer.from(JSON.stringify(who));
test.each([
  ["base64url without padding", utf8.toString("base64url")],
  ["base64, escaped", encodeURIComponent(utf8.toString("base64"))],
  ["base64 with + as it is", utf8.toString("base64")],
  ["Latin-1", encodeURIComponent(Buffer.from(JSON.stringify(who), "latin1").toString("base64"))],
])("what the wallet knows already is filled in: %s", async (_name, text) => {
  const { url } = await ask();
  const { page } = await open(`${url}?prefill=${text}`);
  const values = await page
    .locator("input:not([type]), select, textarea")
    .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value));
  expect(values).toEqual(["Zoë Quux", "28", "02", "1990", "SE", "Malmö"]);
  expect(await page.getByRole("radio", { name: "Where I was born" }).isChecked()).toBe(true);
});

test.each(["%%%", "e30", "W10", "bnVsbA", "x".repeat(9_000), Buffer.from('{"fullName":7}').toString("base64")])(
  "a prefill that is none (%s) leaves an empty form",
  async (text) => {
    const { url } = await ask();
    const response = await fetch(`${url}?prefill=${text}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('aria-describedby="fullName-hint fullName-error" value=""');
  },
);

/** What the form holds, whatever its language. */
const read = (page: Page) =>
  page
    .locator("form :is(input, select, textarea)")
    .evaluateAll((all) =>
      (all as HTMLInputElement[]).map(({ type, checked, value }) => (/radio|checkbox/.test(type) ? checked : value)),
    );

const goAndComeBack = async (page: Page): Promise<void> => {
  // The browser itself keeps nothing of a page that is encrypted and not to be stored; without encryption it has to be told.
  await page.locator("form").evaluate((form) => form.setAttribute("autocomplete", "off"));
  await page.goto("about:blank");
  await page.goBack();
};
const chooseArabic = async (page: Page): Promise<void> => {
  await page.locator("footer summary").click();
  await page.getByRole("link", { name: "العربية" }).click();
  await page.locator("html[lang=ar]").waitFor();
};

test.each([
  ["going on and back", goAndComeBack],
  ["choosing a language", chooseArabic],
])("what was typed, and of which place, is still there after %s; the consent is given anew", async (_what, leave) => {
  const { id, url } = await ask();
  const opened = await open(`${url}?theme=dark`);
  const { page } = opened;
  await fillIn(opened);
  await page.getByRole("radio", { name: "Where I was born" }).check();
  const before = await read(page);
  expect(before).toEqual(["Zoë Ångström-Quux", "28", "2", "1990", false, true, "SE", "Uppsala 17", true]);
  await leave(page);
  await expect.poll(() => read(page)).toEqual([...before.slice(0, -1), false]);
  await page.locator("#tos").check();
  await page.locator("#send").click();
  await page.locator("#done-title").waitFor();
  const [kept] = await readCollected(api.deps, id);
  expect(kept?.fields.map((field) => field.id)).toEqual([
    "fullName",
    "dob",
    "pobCountry",
    "pobAddress",
    "tosConfirmed",
  ]);
  expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  expect(opened.misdeeds).toEqual(none);
});

test.each([
  ["Arabic", "٢٨", "٣", "١٩٦٠", "1960-03-28"],
  ["Persian", "۲۸", "۳", "۱۹۶۰", "1960-03-28"],
  ["full width", "０７", "１２", "１９８４", "1984-12-07"],
])("a date in other digits (%s) arrives as one in ours", async (_name, day, month, year, date) => {
  const { id, url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  for (const [label, value] of Object.entries({ Day: day, Month: month, Year: year }))
    await opened.page.getByLabel(label, { exact: true }).fill(value);
  await send(opened);
  await done(opened);
  const [kept] = await readCollected(api.deps, id);
  expect(kept?.fields.find((field) => field.id === "dob")?.value).toBe(date);
});

test("a server that is away loses nothing: the form says so, and goes when it is back", async () => {
  const { id, url } = await ask();
  const opened = await open(url);
  await fillIn(opened);
  await opened.context.setOffline(true);
  await send(opened);
  await opened.page.getByText("Your details could not be saved.").waitFor();
  await opened.context.setOffline(false);
  await send(opened);
  await done(opened);
  expect(await readCollected(api.deps, id)).toHaveLength(1);
});

test("it reaches its opener and is framed by nobody", async () => {
  const { url } = await ask();
  const { headers } = await fetch(url);
  expect(headers.get("cross-origin-opener-policy")).toBe("unsafe-none");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});
