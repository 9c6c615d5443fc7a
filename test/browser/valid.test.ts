import { expect, test } from "vitest";
import { makeLooks } from "./looks.ts";
import { findFaults, findWeaknesses } from "./markup.ts";
import { legal, openShop } from "./shop.ts";
import { openTills } from "./tills.ts";

const { api } = await openShop({ legal });
const looks = await makeLooks(await openTills(api));
/** Those that the server writes whole; the others are held to the same where they are seen (see.test.ts). */
const pages = looks.filter(({ before, reach }) => !before && !reach);

test.each(["en", "ar"])("the markup of every page is valid and accessible: %s", async (lang) => {
  for (const { name, path } of pages)
    for (const theme of ["light", "dark"]) {
      const url = new URL(path, api.url);
      for (const [key, value] of Object.entries({ lang, theme })) url.searchParams.set(key, value);
      const answer = await fetch(url);
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
