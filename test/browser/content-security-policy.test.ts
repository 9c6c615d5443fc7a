import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { en } from "../../api/checkout/texts/en.ts";
import { languages } from "../../api/checkout/texts/languages.ts";
import { addPolicy } from "../../payments/buyer-data/collection-policies.ts";
import release from "../../runtime/released-pages/release.json" with { type: "json" };
import { makeMerchant, makePayment } from "../integration/api/start-api.ts";
import { testActor } from "../support/test-actor.ts";
import { moveToState, openShop, shopUrls } from "./browser-shop.ts";
import { freezeCountdown } from "./freeze-countdown.ts";
import { none, openPage } from "./open-browser.ts";

const { api, pay, linkOf } = await openShop();

/** Serves the real response without the given headers. */
const without =
  (...names: string[]) =>
  async (route: Route) => {
    const response = await route.fetch();
    const headers = Object.entries(response.headers()).filter(([name]) => !names.includes(name));
    await route.fulfill({ response, headers: Object.fromEntries(headers) });
  };

test.each([
  ["the policy alone prevents framing", ["x-frame-options"], undefined],
  ["X-Frame-Options alone prevents framing", ["content-security-policy"], undefined],
  ["the page as served cannot be framed", [], undefined],
  ["the page can be framed without both headers", ["content-security-policy", "x-frame-options"], "Pay $5.00 to Shop"],
])("%s", async (_what, taken, shown) => {
  const { page } = await openPage(api.url, { provokes: true });
  await page.route(`${api.url}/?pid=*`, without(...taken));
  // Both sites are on one machine, so that no network rule of the browser prevents the framing.
  const evil = `http://localhost:${new URL(api.url).port}/evil`;
  await page.route(evil, async (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${linkOf(await pay())}"></iframe>` }),
  );
  await page.goto(evil);
  const title = page.frameLocator("iframe").locator("h1:visible");
  if (shown) return expect(await title.textContent()).toBe(shown);
  await expect.poll(() => page.frames()[1]?.url()).toBe("chrome-error://chromewebdata/");
  expect(await title.filter({ hasText: "Pay" }).count()).toBe(0);
});

const evil = `</script><img src="/x" onerror="globalThis.owned = true">`;
const icon = `data:image/svg+xml,${encodeURIComponent(
  `<svg xmlns="http://www.w3.org/2000/svg" onload="top.owned = true"><script>top.owned = true</script><image href="https://evil.example.test/x.png"/></svg>`,
)}`;

/** Installs a wallet whose name and icon are markup in every page of a context. */
const announceEvil = (page: Page): Promise<unknown> =>
  page.addInitScript(
    (info) => {
      const detail = { info, provider: { request: () => new Promise(() => undefined) } };
      const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
      addEventListener("eip6963:requestProvider", announce);
    },
    { uuid: "evil", name: evil, icon, rdns: "evil" },
  );

test("the names of a shop, an order and a wallet are shown as plain text even when they contain markup", async () => {
  const hostile = await makeMerchant(api);
  await api.db.updateTable("merchant").set({ name: evil }).where("id", "=", hostile.merchantId).execute();
  await addPolicy(api.deps, {
    actor: testActor,
    merchantId: hostile.merchantId,
    asset: null,
    unit: null,
    minimum: null,
  });
  const { page, pageErrors } = await openPage(api.url);
  const asked: string[] = [];
  page.on("request", (request) => void asked.push(new URL(request.url()).pathname));
  await announceEvil(page);
  await freezeCountdown(page);
  const expectText = async (...texts: string[]): Promise<void> => {
    const seen = (await page.locator("body").innerText()).replace(/[\u2068\u2069]/g, "");
    for (const text of texts) expect(seen).toContain(text);
    expect(await page.locator("img").count()).toBe(await page.locator("img[src^='data:image/']").count());
    expect(await page.evaluate("globalThis.owned")).toBeUndefined();
  };
  for (const lang of ["en", "ar"]) {
    const id = await makePayment(api, hostile, { checkout: shopUrls });
    await api.db.updateTable("payment").set({ reference_id: evil }).where("id", "=", id).execute();
    await page.goto(linkOf(id, `&lang=${lang}`));
    for (const closed of await page.locator("details").all())
      await closed.evaluate((one) => one.setAttribute("open", ""));
    await page.locator("#wallets button").filter({ hasText: evil }).waitFor();
    await expectText(evil);
    expect(await page.title()).toContain(evil);
    expect(await page.locator("#wallets img").getAttribute("src")).toBe(icon);
    // The wallet's name and the order, as the script shows them.
    await page.locator("#wallets button").click();
    const { connecting } = languages.find(({ tag }) => tag === lang)?.texts ?? en;
    await expectText(connecting.replace("{wallet}", evil));
    expect(await page.locator("dd bdi").first().textContent()).toBe(evil);
    // The texts that the script shows in later states.
    await moveToState(api, id, "processing");
    await page.locator("#processing").waitFor();
    await expectText();
    expect(await page.title()).toContain(evil);
    await api.post(`/checkout/${id}/simulate`, {}, { status: "succeeded" });
    await page.locator("#leaving-text").filter({ hasText: evil }).waitFor();
    await expectText(evil);
    await page.keyboard.press("Escape");
  }
  const id = await makePayment(api, hostile);
  const accounts = [`eip155:31337:0x${"c1".repeat(20)}`];
  const { body } = await api.post(`/v1/gateway/payment/${id}/options`, hostile.wallet, { accounts });
  const [option] = body["options"] as [{ collectData: { url: string } }];
  await page.goto(option.collectData.url);
  await expectText(evil);
  expect(asked).not.toContain("/x");
  expect(pageErrors).toEqual(none);
});

test("a browser receives the headers and scripts of the release file and runs those scripts", async () => {
  const id = await pay();
  for (const [path, kind] of [
    [`/?pid=${id}`, "checkout"],
    ["/?pid=pay_none", "checkout"],
    [`/collect/${id}/opt_none/unknown`, "collect"],
  ] as const) {
    const { page } = await openPage(api.url);
    const response = await page.goto(`${api.url}${path}`);
    const served = { ...(await response?.allHeaders()) };
    const written = Object.entries(release.headers[kind]).map(([name, value]) => [
      name,
      value.replaceAll("https://{checkout_host}", api.url),
    ]);
    expect({ path, ...served }).toMatchObject({
      ...Object.fromEntries(written),
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
    const scripts = await page
      .locator("script[src]")
      .evaluateAll((all) => all.map((one) => [one.getAttribute("src"), one.getAttribute("integrity")]));
    const { path: src, integrity } = release.scripts[kind];
    expect({ path, scripts }).toEqual({
      path,
      scripts: path.endsWith("none") && kind === "checkout" ? [] : [[src, integrity]],
    });
  }
});

test("a wallet that opens its own window can return its result to the page", async () => {
  const { page, context } = await openPage(api.url);
  await context.route("https://wallet.example.test/", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<button onclick="opener.postMessage('0x${"c1".repeat(20)}', '*'); close()">Connect</button>`,
    }),
  );
  await page.addInitScript(() => {
    const request = ({ method }: { method: string }) =>
      new Promise((resolve) => {
        if (method !== "eth_requestAccounts") return;
        addEventListener("message", ({ data }) => resolve([data]));
        open("https://wallet.example.test/", "wallet", "width=300,height=500");
      });
    const info = { uuid: "popup", name: "Popup", icon: "", rdns: "popup" };
    const detail = { info, provider: { request } };
    const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
    addEventListener("eip6963:requestProvider", announce);
  });
  await page.goto(linkOf(await pay()));
  const opening = context.waitForEvent("page");
  await page.getByRole("button", { name: "Popup" }).click();
  const popup = await opening;
  await popup.getByRole("button", { name: "Connect" }).click();
  await page.locator("#choices .main").first().waitFor();
});

test("injected markup runs and loads nothing, and no text becomes markup", async () => {
  const { page, context, pageErrors } = await openPage(api.url, { provokes: true });
  let asked = 0;
  await context.route("https://evil.example.test/**", (route) => {
    asked += 1;
    return route.abort();
  });
  await page.goto(linkOf(await pay()));
  const blocked = await page.evaluate(() => {
    try {
      document.body.innerHTML = "<b>x</b>";
      return "not blocked";
    } catch (error) {
      return String(error);
    }
  });
  expect(blocked).toContain("TrustedHTML");
  const handler = await page.evaluate(() => {
    const picture = document.createElement("img");
    picture.src = "https://evil.example.test/pixel.png";
    document.body.append(picture);
    try {
      picture.setAttribute("onerror", "document.title='owned'");
      return "not blocked";
    } catch (error) {
      return String(error);
    }
  });
  expect(handler).toContain("TrustedScript");
  await page.waitForTimeout(300);
  expect(await page.title()).not.toBe("owned");
  // The browser reported the picture and both texts.
  expect(pageErrors.reports.length).toBeGreaterThanOrEqual(2);
  expect(asked).toBe(0);
});

test.each([
  ["the policy blocks it", (policy: string) => policy, false],
  ["a policy without a path would allow it", (policy: string) => policy.replace(/\/assets\/(?=;)/, ""), true],
])("a file that a merchant uploaded to /logos cannot run as a script: %s", async (_what, change, runs) => {
  const { page } = await openPage(api.url, { provokes: true });
  let asked = false;
  await page.route(`${api.url}/logos/*`, (route) => {
    asked = true;
    return route.fulfill({ contentType: "text/javascript", body: "globalThis.owned = true" });
  });
  // Markup in the document itself: only the script policy applies, not Trusted Types.
  await page.route(`${api.url}/?pid=*`, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace("<main", `<script src="/logos/${"0".repeat(64)}"></script><main`);
    const policy = change(response.headers()["content-security-policy"] ?? "");
    await route.fulfill({ response, body, headers: { ...response.headers(), "content-security-policy": policy } });
  });
  await page.goto(linkOf(await pay()));
  expect(await page.locator("script[src^='/logos/']").count()).toBe(1);
  expect({ asked, ran: (await page.evaluate("globalThis.owned")) === true }).toEqual({ asked: runs, ran: runs });
});

test("a CSP report to the page's reporting endpoint becomes a log line without the URL of the page", async () => {
  // Browsers send reports only over https, so the test sends one itself.
  const id = await pay();
  const { headers } = await fetch(linkOf(id));
  expect(headers.get("content-security-policy")).toContain("report-to csp");
  const [, endpoint = ""] = /^csp="(.*)"$/.exec(headers.get("reporting-endpoints") ?? "") ?? [];
  const report = (body: string): Promise<Response> =>
    fetch(endpoint, { method: "POST", headers: { "content-type": "application/reports+json" }, body });
  const violation = {
    effectiveDirective: "img-src",
    blockedURL: "https://evil.example.test/?secret",
    documentURL: linkOf(id),
  };
  expect((await report(JSON.stringify([{ type: "csp-violation", body: violation }]))).status).toBe(204);
  const line = api.lines.find((one) => one.includes("browser blocked a resource"));
  expect(line).toContain("evil.example.test");
  for (const hidden of ["secret", id]) expect(line).not.toContain(hidden);
  for (const body of ["", "{", '[{"type":7}]']) expect((await report(body)).status).toBe(400);
});
