import type { Page } from "playwright-core";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../local/networks-document.ts";
import { readCollected } from "../../payments/buyer-data/collected-data.ts";
import { done, fillIn, openShopWithDataPolicy, send } from "./data-form-helpers.ts";
import { none } from "./open-browser.ts";

const buyer = privateKeyToAccount(newKey().privateKey);
const { api, merchant, ask, open } = await openShopWithDataPolicy(`eip155:31337:${buyer.address}`);

test("the form works by keyboard alone, the data is stored encrypted, and the confirm then needs no data", async () => {
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
  expect(opened.pageErrors).toEqual(none);
});

test("an invalid form lists its errors at the top and at the fields and sends nothing", async () => {
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
  // The server checks the date against its own clock.
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
  ["base64 with an unescaped +", utf8.toString("base64")],
  ["Latin-1", encodeURIComponent(Buffer.from(JSON.stringify(who), "latin1").toString("base64"))],
])("the form is prefilled with the wallet's data: %s", async (_name, text) => {
  const { url } = await ask();
  const { page } = await open(`${url}?prefill=${text}`);
  const values = await page
    .locator("input:not([type]), select, textarea")
    .evaluateAll((all) => all.map((one) => (one as HTMLInputElement).value));
  expect(values).toEqual(["Zoë Quux", "28", "02", "1990", "SE", "Malmö"]);
  expect(await page.getByRole("radio", { name: "Where I was born" }).isChecked()).toBe(true);
});

test.each(["%%%", "e30", "W10", "bnVsbA", "x".repeat(9_000), Buffer.from('{"fullName":7}').toString("base64")])(
  "an invalid prefill (%s) leaves the form empty",
  async (text) => {
    const { url } = await ask();
    const response = await fetch(`${url}?prefill=${text}`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('aria-describedby="fullName-hint fullName-error" value=""');
  },
);

/** Returns the values of the form, independent of its language. */
const read = (page: Page) =>
  page
    .locator("form :is(input, select, textarea)")
    .evaluateAll((all) =>
      (all as HTMLInputElement[]).map(({ type, checked, value }) => (/radio|checkbox/.test(type) ? checked : value)),
    );

const goAndComeBack = async (page: Page): Promise<void> => {
  // A browser keeps no form state of an uncached HTTPS page; over HTTP the test sets the header explicitly.
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
])("the form keeps its input after %s, except for the consent", async (_what, leave) => {
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
  expect(opened.pageErrors).toEqual(none);
});

test.each([
  ["Arabic", "٢٨", "٣", "١٩٦٠", "1960-03-28"],
  ["Persian", "۲۸", "۳", "۱۹۶۰", "1960-03-28"],
  ["full width", "０７", "１２", "１９８４", "1984-12-07"],
])("a date in other digits (%s) is stored in ASCII digits", async (_name, day, month, year, date) => {
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

test("the form reports an unreachable server, keeps its input, and can be sent when the server is back", async () => {
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

test("the data page can reach its opener and cannot be framed", async () => {
  const { url } = await ask();
  const { headers } = await fetch(url);
  expect(headers.get("cross-origin-opener-policy")).toBe("unsafe-none");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});
