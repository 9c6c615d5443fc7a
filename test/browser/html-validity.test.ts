import { expect, test } from "vitest";
import { legal, openShop } from "./browser-shop.ts";
import { findMarkupErrors, findPolicyWeaknesses } from "./markup-errors.ts";
import { makeViews } from "./page-views.ts";
import { openViewMerchants } from "./view-merchants.ts";

const { api } = await openShop({ legal });
const views = await makeViews(await openViewMerchants(api));
/** The views that the server renders completely; the accessibility test of all views validates the others. */
const pages = views.filter(({ before, reach }) => !before && !reach);

test.each(["en", "ar"])("the markup of every page is valid and accessible: %s", async (lang) => {
  for (const { name, path } of pages)
    for (const theme of ["light", "dark"]) {
      const url = new URL(path, api.url);
      for (const [key, value] of Object.entries({ lang, theme })) url.searchParams.set(key, value);
      const answer = await fetch(url);
      expect({ name, faults: await findMarkupErrors(await answer.text()) }).toEqual({ name, faults: [] });
    }
});

test("csp_evaluator finds no weakness in the policies of the pages", async () => {
  for (const { name, path } of pages) {
    const policy = (await fetch(`${api.url}${path}`)).headers.get("content-security-policy") ?? "";
    // The policy of a deployment: tests serve over HTTP.
    const deployed = policy.replaceAll(api.url, "https://pay.example.test");
    expect({ name, findings: findPolicyWeaknesses(deployed) }).toEqual({ name, findings: [] });
  }
  // The evaluator finds the weakness of a page that allows inline scripts.
  expect(findPolicyWeaknesses("script-src 'unsafe-inline'")).not.toEqual([]);
});
