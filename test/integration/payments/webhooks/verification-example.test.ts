import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { addCleanup } from "../../../support/cleanups.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { makeWebhookFixture, type ReceivedWebhook } from "../../../support/webhook-endpoint.ts";

const page = readFileSync(new URL("../../../../docs/webhooks.md", import.meta.url), "utf8");
const [, code = ""] = /```js\n([\s\S]+?)```/.exec(page) ?? [];
const [, example = ""] = /```json\n([\s\S]+?)```/.exec(page) ?? [];
const folder = mkdtempSync(join(tmpdir(), "docs-"));
addCleanup(async () => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "verify.mjs");
writeFileSync(file, code);
const { verifyWebhook } = (await import(file)) as {
  verifyWebhook(secret: string, headers: ReceivedWebhook["headers"], rawBody: string): unknown;
};

const { fixture, endpoint, secret, deliver } = await makeWebhookFixture(await startChain());
await fixture.create();
await deliver();
const [arrival] = endpoint.arrivals as [ReceivedWebhook];

test("the documented code accepts the webhooks that the service sends", () => {
  expect(verifyWebhook(secret, arrival.headers, arrival.body)).toEqual(arrival.event);
});

test("the documented code refuses a changed body, another secret, another time and a missing signature", () => {
  const { headers, body } = arrival;
  const later = String(Number(headers["webhook-timestamp"]) + 400);
  const other = `whsec_${Buffer.alloc(32).toString("base64")}`;
  expect(() => verifyWebhook(secret, headers, body.replace("100", "900"))).toThrow(/not signed/);
  expect(() => verifyWebhook(other, headers, body)).toThrow(/not signed/);
  expect(() => verifyWebhook(secret, { ...headers, "webhook-timestamp": later }, body)).toThrow(/future/);
  expect(() => verifyWebhook(secret, {}, body)).toThrow();
});

test("the documented code refuses a secret that is missing or too short, whose signatures anyone could make", () => {
  const headers = { "webhook-id": "evt_1", "webhook-timestamp": String(Math.floor(Date.now() / 1_000)) };
  for (const weak of ["", "whsec_", "null", `whsec_${Buffer.alloc(15).toString("base64")}`]) {
    const key = Buffer.from(weak.replace("whsec_", ""), "base64");
    const signed = createHmac("sha256", key).update(`evt_1.${headers["webhook-timestamp"]}.{}`).digest("base64");
    expect(() => verifyWebhook(weak, { ...headers, "webhook-signature": `v1,${signed}` }, "{}")).toThrow(/secret/);
  }
});

test("the documented example has the members of a real event", () => {
  const shown = JSON.parse(example) as ReceivedWebhook["event"];
  expect(Object.keys(shown)).toEqual(Object.keys(arrival.event));
  expect(Object.keys(shown.data)).toEqual(Object.keys(arrival.event.data));
});
