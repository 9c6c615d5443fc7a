import { expect, test } from "vitest";
import { startApi } from "../start-api.ts";

const api = await startApi();

test("the contract is served as one document, which a client may cache until it changes", async () => {
  const answer = await api.get("/openapi.json");
  expect(answer).toMatchObject({
    status: 200,
    body: { openapi: "3.1.0", servers: [{ url: "https://pay.example.test" }] },
  });
  const etag = answer.headers.get("etag") ?? "";
  expect((await api.get("/openapi.json", { "if-none-match": etag })).status).toBe(304);
});

test("the documentation page loads everything from its own origin", async () => {
  const page = await fetch(`${api.url}/docs`);
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const rules = page.headers.get("content-security-policy") ?? "";
  expect(rules).toContain("default-src 'self'");
  expect(rules).toContain("frame-ancestors 'none'");
  const html = await page.text();
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
  expect(loaded.length).toBeGreaterThan(2);
  for (const target of loaded) {
    expect(target).not.toMatch(/^(https?:)?\/\//);
    const asset = await fetch(new URL(target, `${api.url}/docs`));
    expect((await asset.arrayBuffer()).byteLength).toBeGreaterThan(0);
    expect([target, asset.status]).toEqual([target, 200]);
    expect(asset.headers.get("x-content-type-options")).toBe("nosniff");
  }
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>[^<]/);
  const contract = await (await fetch(`${api.url}/openapi.json`)).json();
  expect(await (await fetch(`${api.url}/docs/json`)).json()).toEqual(contract);
  const settings = await (await fetch(`${api.url}/docs/static/swagger-initializer.js`)).text();
  expect(settings).toContain('"tryItOutEnabled":true');
  expect(settings).toMatch(/"requestInterceptor":\s*function refuseLiveKeys/);
});
