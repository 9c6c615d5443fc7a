import type { Page } from "playwright-core";
import { plainPage } from "../../api/checkout/pages/page-layout.ts";
import { pageHeaders } from "../../api/checkout/routes/page-headers.ts";
import { pickLanguage } from "../../api/checkout/texts/languages.ts";
import { makeDataViews } from "./data-views.ts";
import { freezeCountdown } from "./freeze-countdown.ts";
import { makePath, makePayment, moveWhileOpen, shopUrls, shown, type View, type ViewMerchants } from "./page-view.ts";
import { answer, ended } from "./wallet-fakes.ts";
import { makeWalletStepViews } from "./wallet-step-views.ts";

/** Opens a view in a page that may have shown others before; with `live` it reaches its state while the page is open. */
export async function openView(
  page: Page,
  origin: string,
  view: View,
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
export async function makeViews(merchants: ViewMerchants): Promise<View[]> {
  return [
    ...(await makeStates(merchants)),
    ...(await makeWalletStepViews(merchants)),
    ...(await makeDataViews(merchants)),
    ...plainViews(),
  ];
}

/** Returns the views of the states that the server renders. */
async function makeStates(merchants: ViewMerchants): Promise<View[]> {
  const at = (...way: string[]) => makePath(merchants, way);
  const unclear = (status: string): Pick<View, "before" | "reach"> => ({
    before: (page) => answer(page, "**/status?*", ended(status, "unclear")),
    reach: (page) => shown(page, `#${status}`),
  });
  const paid = ["processing", "succeeded"];
  const returning = await makePath(merchants, paid, { checkout: shopUrls });
  const liveReturning = moveWhileOpen(merchants, paid, { checkout: shopUrls });
  const come = async (...way: string[]) => ({ path: await at(...way), live: moveWhileOpen(merchants, way) });
  return [
    {
      name: "requires_action",
      caption: "waiting for the buyer (a live payment)",
      path: `/?pid=${await makePayment(merchants.live)}`,
    },
    { name: "arabic", caption: "in Arabic, from right to left", path: await at(), lang: "ar" },
    {
      name: "computer",
      caption: "waiting for the buyer, on a computer",
      path: `/?pid=${await makePayment(merchants.live)}`,
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
      before: freezeCountdown,
      reach: (page) => shown(page, "#stay"),
    },
    {
      name: "stayed",
      caption: "succeeded: the buyer stopped the countdown",
      path: returning,
      live: liveReturning,
      before: freezeCountdown,
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
        answer(page, "**/test-wallet", {
          collectUrl: new URL(await merchants.makeDataPagePath(), merchants.shop.baseUrl).href,
        }),
      reach: async (page) => {
        await page.locator("#console summary").click();
        await page.locator("#console .main").first().click();
        await shown(page, "#console-asks");
      },
    },
  ];
}

/** Returns the plain pages. The test serves the server's own error pages through the browser. */
function plainViews(): View[] {
  const serve = (
    status: number,
    title: "tooOftenTitle" | "serverErrorTitle",
    text: "tooOftenText" | "serverErrorText",
  ) => ({
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
    { name: "rate-limited", caption: "too many requests", path, ...serve(429, "tooOftenTitle", "tooOftenText") },
    {
      name: "server-error",
      caption: "an error of the service",
      path,
      ...serve(500, "serverErrorTitle", "serverErrorText"),
    },
  ];
}
