import type { Page } from "playwright-core";
import { pageHeaders } from "../../api/checkout/headers.ts";
import { pickLanguage } from "../../api/checkout/languages.ts";
import { plainPage } from "../../api/checkout/layout.ts";
import { answer, ended } from "./fakes.ts";
import { holdCountdown } from "./hold.ts";
import { goLive, type Look, makePath, makePayment, shopUrls, shown, type Tills } from "./look.ts";
import { makeDataLooks } from "./look-data.ts";
import { makeSteps } from "./look-pay.ts";

/** Opens a view in a page that may have shown others before; with `live` it reaches its state while the page is open. */
export async function openLook(
  page: Page,
  origin: string,
  view: Look,
  lang: string,
  { live = false }: { live?: boolean } = {},
): Promise<void> {
  await page.unrouteAll({ behavior: "ignoreErrors" });
  // Forget what another view has sent. A page that is still empty has no storage.
  await page.evaluate("localStorage.clear()").catch(() => undefined);
  // The shop does not exist: a navigation to it stays on the page.
  await page.route(`${new URL(shopUrls.successUrl).origin}/**`, (route) => route.fulfill({ status: 204 }));
  await view.before?.(page);
  const { path, change } = (live && (await view.live?.())) || { path: view.path, change: undefined };
  const url = new URL(path, origin);
  url.searchParams.set("lang", lang);
  await page.goto(url.href);
  await change?.(page);
  await view.reach?.(page);
}

/** Returns every view: each state of the checkout and data pages, and the steps between them. */
export async function makeLooks(tills: Tills): Promise<Look[]> {
  return [...(await makeStates(tills)), ...(await makeSteps(tills)), ...(await makeDataLooks(tills)), ...plainLooks()];
}

/** Returns the views of the states that the server renders. */
async function makeStates(tills: Tills): Promise<Look[]> {
  const at = (...way: string[]) => makePath(tills, way);
  const unclear = (status: string): Pick<Look, "before" | "reach"> => ({
    before: (page) => answer(page, "**/status?*", ended(status, "unclear")),
    reach: (page) => shown(page, `#${status}`),
  });
  const paid = ["processing", "succeeded"];
  const returning = await makePath(tills, paid, { checkout: shopUrls });
  const liveReturning = goLive(tills, paid, { checkout: shopUrls });
  const come = async (...way: string[]) => ({ path: await at(...way), live: goLive(tills, way) });
  return [
    {
      name: "requires_action",
      caption: "waiting for the buyer (a live payment)",
      path: `/?pid=${await makePayment(tills.live)}`,
    },
    { name: "arabic", caption: "in Arabic, from right to left", path: await at(), lang: "ar" },
    {
      name: "computer",
      caption: "waiting for the buyer, on a computer",
      path: `/?pid=${await makePayment(tills.live)}`,
      on: "computer",
    },
    { name: "processing", caption: "processing", ...(await come("processing")) },
    {
      name: "processing-long",
      caption: "processing for more than half a minute: the buyer may close the page",
      path: await at("processing"),
      before: (page) =>
        page.route("**/?pid=*", async (route) => {
          const response = await route.fetch();
          const body = (await response.text()).replace(/"sinceMs":\d+/, '"sinceMs":31000');
          await route.fulfill({ response, body });
        }),
      reach: (page) => shown(page, "#may-close"),
    },
    { name: "succeeded", caption: "succeeded", ...(await come("processing", "succeeded")) },
    {
      name: "leaving",
      caption: "succeeded: the countdown before the page returns to the shop",
      path: returning,
      live: liveReturning,
      before: holdCountdown,
      reach: (page) => shown(page, "#stay"),
    },
    {
      name: "stayed",
      caption: "succeeded: the buyer stopped the countdown",
      path: returning,
      live: liveReturning,
      before: holdCountdown,
      reach: (page) => page.locator("#stay").click(),
    },
    { name: "failed", caption: "failed", ...(await come("processing", "failed")) },
    {
      name: "failed-unclear",
      caption: "failed, and the buyer may have sent money themselves",
      path: await at(),
      ...unclear("failed"),
    },
    { name: "expired", caption: "expired", ...(await come("expired")) },
    {
      name: "expired-unclear",
      caption: "expired, and the buyer may have sent money themselves",
      path: await at(),
      ...unclear("expired"),
    },
    { name: "cancelled", caption: "cancelled", ...(await come("cancelled")) },
    {
      name: "test-console",
      caption: "the test console of a test payment",
      path: await at(),
      reach: (page) => page.locator("#console summary").click(),
    },
    {
      name: "test-console-asks",
      caption: "the test console of a payment whose shop requires buyer data",
      path: await at(),
      before: async (page) =>
        answer(page, "**/test-wallet", { collectUrl: new URL(await tills.askWho(), tills.shop.baseUrl).href }),
      reach: async (page) => {
        await page.locator("#console summary").click();
        await page.locator("#console .main").first().click();
        await shown(page, "#console-asks");
      },
    },
  ];
}

/** Returns the plain pages. The test serves the server's own error pages through the browser. */
function plainLooks(): Look[] {
  const serve = (status: number, title: "tooOftenTitle" | "troubleTitle", text: "tooOftenText" | "troubleText") => ({
    before: (page: Page) =>
      page.route("**/?pid=*", (route) => {
        const url = new URL(route.request().url());
        const language = pickLanguage(url.searchParams.get("lang") ?? undefined, undefined);
        const at = { language, base: "", inLanguage: (tag: string) => `?lang=${tag}` };
        const texts = { title: language.texts[title], text: language.texts[text] };
        const headers = { ...pageHeaders(url.origin), "content-type": "text/html; charset=utf-8" };
        return route.fulfill({ status, headers, body: plainPage(at, texts).markup });
      }),
  });
  const path = "/?pid=pay_none";
  return [
    { name: "not-found", caption: "an unknown payment link", path },
    { name: "too-often", caption: "too many requests", path, ...serve(429, "tooOftenTitle", "tooOftenText") },
    { name: "trouble", caption: "an error of the service", path, ...serve(500, "troubleTitle", "troubleText") },
  ];
}
