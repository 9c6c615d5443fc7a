import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { memberNames } from "../../runtime/member-names.ts";
import { createSafeFetch } from "../../runtime/safe-fetch.ts";
import { startHttps } from "../support/https-server.ts";
import { photo } from "../support/sample-pictures.ts";
import { waitFor } from "../support/wait-for.ts";
import { openShop } from "./browser-shop.ts";
import { none, openPage } from "./open-browser.ts";
import { makeViews } from "./page-views.ts";
import { openViewMerchants } from "./view-merchants.ts";

/** What docs/checkout.md says: the heaviest page and its script without a logo, and with one. */
const documented = await readFile(new URL("../../docs/checkout.md", import.meta.url), "utf8").then((text) => {
  const [, bytes, script] = /\| 25000, script 12000 \| (\d+), script (\d+) \|/.exec(text) ?? [];
  const [, withLogo] = /stays at about (\d+) bytes in three/.exec(text) ?? [];
  return { bytes: Number(bytes), script: Number(script), withLogo: Number(withLogo) };
});

const picture = await photo(1_000).jpeg({ quality: 95 }).toBuffer();
const icons = await startHttps(["icons.test"], (_request, response) => void response.end(picture));
const resolve = async () => ["127.0.0.1"];
const { api } = await openShop({ safeFetch: createSafeFetch({ allowPrivate: true, ca: icons.ca, resolve }) });

test("a page with a photograph as its logo has at most 25 kB in three requests, a script of at most 12 kB, no requests to other hosts, and the documented weight", async () => {
  expect(picture.length).toBeGreaterThan(100_000);
  const iconUrl = `https://icons.test:${icons.port}/logo.jpg`;
  const views = await makeViews(await openViewMerchants(api, iconUrl));
  const heaviest = { bytes: 0, script: 0, withLogo: 0 };
  for (const { name, path } of views.filter(({ before, reach }) => !before && !reach)) {
    const { page, context, pageErrors } = await openPage(api.url);
    const session = await context.newCDPSession(page);
    await session.send("Network.enable");
    const sizes: { url: string; bytes: number }[] = [];
    const urls = new Map<string, string>();
    session.on("Network.requestWillBeSent", ({ requestId, request }) => void urls.set(requestId, request.url));
    session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
      sizes.push({ url: urls.get(requestId) ?? "", bytes: encodedDataLength });
    });
    // A wallet whose icon is on another server.
    await page.addInitScript(() => {
      const provider = { request: async () => [] };
      const info = { uuid: "a", name: "A", icon: "https://tracker.example.test/a.png", rdns: "a" };
      const detail = { info, provider };
      const announce = () => dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
      addEventListener("eip6963:requestProvider", announce);
    });
    await page.goto(`${api.url}${path}`);
    // The browser reports data URIs too, which cross no network.
    const listFirst = () => sizes.filter(({ url }) => url.startsWith("http") && !url.includes("/status"));
    await waitFor(() => listFirst().length >= requestsOf(name), { within: 20_000, what: `the requests of ${name}` });
    // Further requests would come soon.
    await page.waitForTimeout(300);
    const first = listFirst();
    const total = first.reduce((sum, { bytes }) => sum + bytes, 0);
    const script = first.filter(({ url }) => url.endsWith(".js")).reduce((sum, { bytes }) => sum + bytes, 0);
    expect({ name, requests: first.length }).toEqual({ name, requests: requestsOf(name) });
    expect(total, `${name}: ${total} bytes`).toBeLessThan(25_000);
    expect(script, `${name}: script of ${script} bytes`).toBeLessThan(12_000);
    expect({ name, ...pageErrors }).toEqual({ name, ...none });
    const logo = first.filter(({ url }) => url.includes("/logo")).reduce((sum, { bytes }) => sum + bytes, 0);
    heaviest.bytes = Math.max(heaviest.bytes, total - logo);
    heaviest.script = Math.max(heaviest.script, script);
    heaviest.withLogo = Math.max(heaviest.withLogo, total);
    await context.close();
  }
  for (const name of memberNames(heaviest))
    expect(Math.abs(heaviest[name] / documented[name] - 1), `${name}: ${heaviest[name]} bytes`).toBeLessThan(0.03);
});

/** Returns the number of requests of a page: the data page shows no logo, and the not-found page has no script either. */
function requestsOf(name: string): number {
  if (name === "not-found") return 1;
  return name.startsWith("data") ? 2 : 3;
}
