import type { Frame, Page } from "playwright-core";
import { expect, test } from "vitest";
import { pickFramers } from "../../api/checkout/client/bridges.ts";
import { readCollected } from "../../payments/collect.ts";
import { addFrameOrigin } from "../../payments/frames.ts";
import { openPage, type PageOptions } from "./browser.ts";
import { done, fillIn, OK, openAskingShop, send } from "./collect-form.ts";

const { api, merchant, ask, makeOther, open, linkOf } = await openAskingShop(`eip155:31337:0x${"c1".repeat(20)}`);
const listed = "https://wallet.example.test";
const alsoListed = "http://localhost:4173";
const stranger = "https://evil.example.test";
for (const origin of [alsoListed, listed]) await addFrameOrigin(api.deps, { accountId: merchant.accountId, origin });

/** A browser in which each of these sites frames what is said of it; the first is the one that is opened. */
async function openAround(sites: [site: string, src: string][], options: PageOptions = {}) {
  const { context, page } = await openPage(api.url, options);
  const listen =
    "var got = []; addEventListener('message', ({ origin, data }) => got.push([origin, JSON.parse(data)]))";
  for (const [site, src] of sites)
    await context.route(`${site}/`, (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<script>${listen}</script><iframe src="${src}" width="600" height="1200"></iframe>`,
      }),
    );
  await page.goto(`${sites[0]?.[0]}/`);
  return page;
}

const toldTo = (frame: Frame): Promise<unknown> => frame.evaluate("got");
const innermost = (page: Page): Frame => page.frames().at(-1) as Frame;

test("a listed site shows the page in a frame, and is told once, after the server has it", async () => {
  const { id, url } = await ask();
  const page = await openAround([[listed, url]]);
  const form = innermost(page);
  await fillIn({ page, form });
  expect(await toldTo(page.mainFrame())).toEqual([]);
  await send({ page, form });
  await done({ page, form });
  expect(await readCollected(api.deps, id)).toHaveLength(1);
  // Longer than the second form for iOS takes, which is none of a frame's.
  await page.waitForTimeout(2_000);
  expect(await toldTo(page.mainFrame())).toEqual([[api.url, OK]]);
});

test("a browser that does not say who frames a page is left to find him among those listed", () => {
  expect(pickFramers([alsoListed, listed], undefined)).toEqual([alsoListed, listed]);
  expect(pickFramers([alsoListed, listed], stranger)).toEqual([]);
});

test("among windows that are all listed, the one right around the page is told, and nobody else", async () => {
  const { url } = await ask();
  const page = await openAround([
    [alsoListed, `${listed}/`],
    [listed, url],
  ]);
  const form = innermost(page);
  await fillIn({ page, form });
  await send({ page, form });
  await done({ page, form });
  const [outer, inner] = page.frames() as [Frame, Frame];
  await expect.poll(() => toldTo(inner)).toEqual([[api.url, OK]]);
  expect(await toldTo(outer)).toEqual([]);
});

/** Which site frames what, from the outermost in. */
const refused: [string, (data: { id: string; url: string }) => [site: string, src: string][]][] = [
  ["a stranger", ({ url }) => [[stranger, url]]],
  [
    "a listed site inside a stranger",
    ({ url }) => [
      [stranger, `${listed}/`],
      [listed, url],
    ],
  ],
  [
    "a stranger inside a listed site",
    ({ url }) => [
      [listed, `${stranger}/`],
      [stranger, url],
    ],
  ],
  ["a listed site under another port", ({ url }) => [[`${listed}:8443`, url]]],
  ["a listed site, the checkout page", ({ id }) => [[listed, linkOf(id)]]],
];

test.each(refused)("framed by %s: not shown, and nobody is told anything", async (_who, sites) => {
  const data = await ask();
  // A page that has been answered tells so as soon as it is shown.
  const opened = await open(data.url);
  await fillIn(opened);
  await send(opened);
  await done(opened);
  const page = await openAround(sites(data), { provokes: true });
  await expect.poll(() => innermost(page).url()).toMatch(/^chrome-error:/);
  await page.waitForTimeout(500);
  for (const frame of page.frames().slice(0, -1)) expect(await toldTo(frame)).toEqual([]);
});

test("the list is an account's own: payments of another one are framed by nobody", async () => {
  const { headers } = await fetch((await ask(await makeOther())).url);
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});

test("a page that lists sites says so by the policy alone; what is no payment of the account is framed by nobody", async () => {
  const { url } = await ask();
  const { headers } = await fetch(url);
  expect(headers.get("x-frame-options")).toBeNull();
  expect(headers.get("content-security-policy")).toContain(`frame-ancestors ${alsoListed} ${listed};`);
  const missing = await fetch(url.replace(/opt_\w+/, "opt_none"));
  expect([missing.status, missing.headers.get("x-frame-options")]).toEqual([404, "DENY"]);
});
