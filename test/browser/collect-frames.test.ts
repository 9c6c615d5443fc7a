import type { Frame, Page } from "playwright-core";
import { expect, test } from "vitest";
import { selectFramingOrigins } from "../../api/checkout/client/wallet-bridges.ts";
import { readCollected } from "../../payments/buyer-data/collected-data.ts";
import { addFrameOrigin } from "../../payments/buyer-data/frame-origins.ts";
import { testActor } from "../support/test-actor.ts";
import { done, fillIn, OK, openShopWithDataPolicy, send } from "./data-form-helpers.ts";
import { openPage, type PageOptions } from "./open-browser.ts";

const { api, merchant, ask, makeOther, open, linkOf } = await openShopWithDataPolicy(
  `eip155:31337:0x${"c1".repeat(20)}`,
);
const listed = "https://wallet.example.test";
const alsoListed = "http://localhost:4173";
const unlisted = "https://evil.example.test";
for (const origin of [alsoListed, listed])
  await addFrameOrigin(api.deps, { actor: testActor, accountId: merchant.accountId, origin });

/** Opens the first of these sites in a browser; each site frames its `src`. */
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

const messagesOf = (frame: Frame): Promise<unknown> => frame.evaluate("got");
const innermost = (page: Page): Frame => page.frames().at(-1) as Frame;

test("a listed site can frame the page and receives one message, after the server has stored the data", async () => {
  const { id, url } = await ask();
  const page = await openAround([[listed, url]]);
  const form = innermost(page);
  await fillIn({ page, form });
  expect(await messagesOf(page.mainFrame())).toEqual([]);
  await send({ page, form });
  await done({ page, form });
  expect(await readCollected(api.deps, id)).toHaveLength(1);
  await expect.poll(() => messagesOf(page.mainFrame())).toEqual([[api.url, OK]]);
  // Longer than the delay of the second iOS message form, which frames do not receive.
  await page.waitForTimeout(2_000);
  expect(await messagesOf(page.mainFrame())).toEqual([[api.url, OK]]);
});

test("a browser without ancestorOrigins delivers the message to the listed origin that frames the page", () => {
  expect(selectFramingOrigins([alsoListed, listed], undefined)).toEqual([alsoListed, listed]);
  expect(selectFramingOrigins([alsoListed, listed], unlisted)).toEqual([]);
});

test("only the direct parent receives the message when several listed sites are nested", async () => {
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
  await expect.poll(() => messagesOf(inner)).toEqual([[api.url, OK]]);
  expect(await messagesOf(outer)).toEqual([]);
});

/** The nested frames of each case, from the outermost in. */
const refused: [string, (data: { id: string; url: string }) => [site: string, src: string][]][] = [
  ["an unlisted site", ({ url }) => [[unlisted, url]]],
  [
    "a listed site inside an unlisted site",
    ({ url }) => [
      [unlisted, `${listed}/`],
      [listed, url],
    ],
  ],
  [
    "an unlisted site inside a listed site",
    ({ url }) => [
      [listed, `${unlisted}/`],
      [unlisted, url],
    ],
  ],
  ["a listed site at another port", ({ url }) => [[`${listed}:8443`, url]]],
  ["a listed site, for the checkout page", ({ id }) => [[listed, linkOf(id)]]],
];

test.each(refused)("the page is not shown and sends no message when it is framed by %s", async (_who, sites) => {
  const data = await ask();
  // The page of a payment with data sends its message as soon as it is shown.
  const opened = await open(data.url);
  await fillIn(opened);
  await send(opened);
  await done(opened);
  const page = await openAround(sites(data), { provokes: true });
  await expect.poll(() => innermost(page).url()).toMatch(/^chrome-error:/);
  await page.waitForTimeout(500);
  for (const frame of page.frames().slice(0, -1)) expect(await messagesOf(frame)).toEqual([]);
});

test("the list of one account does not allow framing of another account's payments", async () => {
  const { headers } = await fetch((await ask(await makeOther())).url);
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
});

test("a page with listed sites sends only frame-ancestors, and a path without a payment of the account allows no framing", async () => {
  const { url } = await ask();
  const { headers } = await fetch(url);
  expect(headers.get("x-frame-options")).toBeNull();
  expect(headers.get("content-security-policy")).toContain(`frame-ancestors ${alsoListed} ${listed};`);
  const missing = await fetch(url.replace(/opt_\w+/, "opt_none"));
  expect([missing.status, missing.headers.get("x-frame-options")]).toEqual([404, "DENY"]);
});
