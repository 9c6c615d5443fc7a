import { expect, test } from "vitest";
import { languages } from "../../api/checkout/texts/languages.ts";
import { legal } from "./browser-shop.ts";
import { fillIn, openShopWithDataPolicy } from "./data-form-helpers.ts";
import { none } from "./open-browser.ts";

const account = `eip155:31337:0x${"c1".repeat(20)}`;
const { pay, ask, open, linkOf } = await openShopWithDataPolicy(account, { legal });

test.each(languages.map(({ tag, texts }) => [tag, texts] as const))(
  "the data page and the checkout page link to the terms and the privacy policy: %s",
  async (tag, texts) => {
    const expected = [
      { text: texts.terms, href: legal.termsUrl, target: "_blank", rel: "noreferrer noopener" },
      { text: texts.privacy, href: legal.privacyUrl, target: "_blank", rel: "noreferrer noopener" },
    ];
    const { url } = await ask();
    for (const [address, place] of [
      [`${url}?lang=${tag}`, "#tos-field"],
      [linkOf(await pay(), `&lang=${tag}`), "footer"],
    ] as const) {
      const { page, pageErrors } = await open(address);
      const links = await page
        .locator(`${place} a[target]`)
        .evaluateAll((all) =>
          (all as HTMLAnchorElement[]).map(({ textContent: text, href, target, rel }) => ({ text, href, target, rel })),
        );
      expect(links).toEqual(expected);
      expect(pageErrors).toEqual(none);
    }
  },
);

test("the terms open in a new window without opener and referrer, and the form keeps its input", async () => {
  const { url } = await ask();
  const opened = await open(url);
  const { page, context } = opened;
  const referers: (string | undefined)[] = [];
  await context.route("https://operator.example.test/**", (route) => {
    referers.push(route.request().headers()["referer"]);
    return route.fulfill({ contentType: "text/html", body: "<title>Terms</title>" });
  });
  await fillIn(opened);
  const opening = context.waitForEvent("page");
  await page.getByRole("link", { name: "Terms of service" }).press("Enter");
  const terms = await opening;
  await terms.waitForURL(legal.termsUrl);
  expect(await terms.evaluate(() => window.opener)).toBeNull();
  expect(referers).toEqual([undefined]);
  expect(await page.getByLabel("Full name").inputValue()).toBe("Zoë Ångström-Quux");
  expect(await page.getByRole("checkbox").isChecked()).toBe(true);
});

test("the pages of an operator without terms and privacy policy have no such links", async () => {
  const plain = await openShopWithDataPolicy(account);
  for (const url of [(await plain.ask()).url, plain.linkOf(await plain.pay())])
    expect(await (await fetch(url)).text()).not.toContain('target="_blank"');
});
