import { expect, test } from "vitest";
import { openPage } from "./browser.ts";
import { openShop } from "./shop.ts";

const { api, pay, linkOf } = await openShop();

test("nobody frames a page", async () => {
  const { page } = await openPage(api.url);
  await page.route("https://evil.example.test/", (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${linkOf("pay_none")}"></iframe>` }),
  );
  await page.goto("https://evil.example.test/");
  const inside = page.frames()[1];
  expect(await inside?.evaluate(() => document.body?.innerText ?? "").catch(() => "")).not.toContain("link");
});

test("markup that got in all the same runs nothing and loads nothing, and no text becomes markup", async () => {
  const { page, context, misdeeds } = await openPage(api.url);
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
  // The browser told of the picture, and of both texts.
  expect(misdeeds.reports.length).toBeGreaterThanOrEqual(2);
  expect(asked).toBe(0);
});

test("a file that a merchant has brought to /logos cannot be run as a script", async () => {
  const { page } = await openPage(api.url);
  await page.goto(linkOf(await pay()));
  const ran = await page.evaluate(
    (src) =>
      new Promise((resolve) => {
        const script = document.createElement("script");
        script.addEventListener("load", () => resolve("ran"));
        script.addEventListener("error", () => resolve("blocked"));
        try {
          script.setAttribute("src", src);
          document.head.append(script);
        } catch {
          resolve("blocked");
        }
      }),
    `/logos/${"0".repeat(64)}`,
  );
  expect(ran).toBe("blocked");
});

test("what a browser reports becomes a log line, without the address of the page", async () => {
  const id = await pay();
  const { page } = await openPage(api.url);
  await page.goto(linkOf(id));
  const report = {
    effectiveDirective: "img-src",
    blockedURL: "https://evil.example.test/?secret",
    documentURL: linkOf(id),
  };
  const sent = await fetch(`${api.url}/csp-reports`, {
    method: "POST",
    headers: { "content-type": "application/reports+json" },
    body: JSON.stringify([{ type: "csp-violation", body: report }]),
  });
  expect(sent.status).toBe(204);
  const line = api.lines.find((one) => one.includes("kept from something"));
  expect(line).toContain("evil.example.test");
  for (const hidden of ["secret", id]) expect(line).not.toContain(hidden);
  for (const body of ["", "{", '[{"type":7}]'])
    expect(
      (
        await fetch(`${api.url}/csp-reports`, {
          method: "POST",
          headers: { "content-type": "application/reports+json" },
          body,
        })
      ).status,
    ).toBe(400);
});
