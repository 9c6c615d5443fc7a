import { expect, test } from "vitest";
import { findFaults, findWeaknesses } from "./markup.ts";
import { openShop } from "./shop.ts";
import { makePages } from "./states.ts";

const shop = await openShop();
const { api } = shop;
const pages = await makePages(shop);

test.each(["en", "ar"])("the markup of every page is valid and accessible: %s", async (lang) => {
  for (const { name, path } of pages)
    for (const theme of ["light", "dark"]) {
      const answer = await fetch(`${api.url}${path}&lang=${lang}&theme=${theme}`);
      expect({ name, faults: await findFaults(await answer.text()) }).toEqual({ name, faults: [] });
    }
});

test("nobody knows how to get around the policy of a page", async () => {
  for (const { name, path } of pages) {
    const policy = (await fetch(`${api.url}${path}`)).headers.get("content-security-policy") ?? "";
    // As it is deployed: a test serves without encryption.
    const deployed = policy.replaceAll(api.url, "https://pay.example.test");
    expect({ name, findings: findWeaknesses(deployed) }).toEqual({ name, findings: [] });
  }
  // What it would say of a page that runs whatever is written into it.
  expect(findWeaknesses("script-src 'unsafe-inline'")).not.toEqual([]);
});
