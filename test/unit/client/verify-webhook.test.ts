import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test, vi } from "vitest";
import { PaymentClient, verifyWebhook, WebhookVerificationError } from "../../../client/index.ts";

const makeSecret = () => `whsec_${randomBytes(32).toString("base64")}`;
const secret = makeSecret();
const now = new Date("2026-03-01T12:00:00Z");
const body = JSON.stringify({ id: "evt_1", type: "payment.succeeded", data: { reference_id: "Bestellung-ü" } });

/** Signs a webhook as the service does, with the library of Standard Webhooks. */
function sign(text = body, { by = [secret], at = now, prefix = "webhook" } = {}): Record<string, string> {
  const signatures = by.map((one) => new Webhook(one).sign("evt_1", at, text)).join(" ");
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return { [`${prefix}-id`]: "evt_1", [`${prefix}-timestamp`]: timestamp, [`${prefix}-signature`]: signatures };
}

const verify = (
  headers: Parameters<typeof verifyWebhook>[1],
  more: { text?: string; secrets?: string | string[] } = {},
) => verifyWebhook(more.text ?? body, headers, more.secrets ?? secret, { now });

describe("a webhook is accepted", () => {
  test("as text and as bytes, with the headers of Node, of fetch and of svix", async () => {
    const event = JSON.parse(body);
    expect(await verify(sign())).toEqual(event);
    expect(await verify(new Headers(sign()))).toEqual(event);
    expect(await verify(sign(body, { prefix: "svix" }))).toEqual(event);
    expect(await verify({ "Webhook-Id": "evt_1", ...sign() })).toEqual(event);
    const bytes = Buffer.from(body);
    expect(await verifyWebhook(bytes, sign(), secret, { now })).toEqual(event);
    expect(await verifyWebhook(new Uint8Array(bytes).buffer, sign(), secret, { now })).toEqual(event);
  });

  test("during a rotation: with two signatures, and with two secrets", async () => {
    const next = makeSecret();
    for (const secrets of [secret, next, [next, secret]])
      expect(await verify(sign(body, { by: [secret, next] }), { secrets })).toMatchObject({ id: "evt_1" });
    expect(await verify(sign(), { secrets: [next, secret] })).toMatchObject({ id: "evt_1" });
  });

  test("up to five minutes before and after its time, or within another tolerance", async () => {
    for (const seconds of [-300, 300])
      expect(await verify(sign(body, { at: new Date(now.getTime() + seconds * 1000) }))).toMatchObject({ id: "evt_1" });
    const old = sign(body, { at: new Date(0) });
    expect(await verifyWebhook(body, old, secret, { now, toleranceSeconds: 1e10 })).toMatchObject({ id: "evt_1" });
  });

  test("by the client of a merchant, at the present time", async () => {
    const client = new PaymentClient({ baseUrl: "https://pay.example.com", apiKey: "k" });
    expect(await client.webhooks.verify(body, sign(body, { at: new Date() }), secret)).toMatchObject({ id: "evt_1" });
  });
});

describe("a webhook is refused", () => {
  test.each<[string, Record<string, string>, { text?: string; secrets?: string | string[] }]>([
    ["with another body", sign(), { text: body.replace("evt_1", "evt_2") }],
    ["that another secret has signed", sign(), { secrets: makeSecret() }],
    ["with another id", { ...sign(), "webhook-id": "evt_2" }, {}],
    ["with another time", { ...sign(), "webhook-timestamp": String(now.getTime() / 1000 + 1) }, {}],
    ["that is older than five minutes", sign(body, { at: new Date(now.getTime() - 301_000) }), {}],
    ["that is from the future", sign(body, { at: new Date(now.getTime() + 301_000) }), {}],
    ["whose time is no number", { ...sign(), "webhook-timestamp": "NaN" }, {}],
    ["without a signature", { ...sign(), "webhook-signature": "" }, {}],
    [
      "with a signature of another version",
      { ...sign(), "webhook-signature": sign()["webhook-signature"]?.replace("v1", "v2") ?? "" },
      {},
    ],
    [
      "with a signature that is cut off",
      { ...sign(), "webhook-signature": sign()["webhook-signature"]?.slice(0, -8) ?? "" },
      {},
    ],
    ["with a signature that is no base64", { ...sign(), "webhook-signature": "v1,%%%" }, {}],
    ["without headers", {}, {}],
  ])("%s", async (_name, headers, more) => {
    await expect(verify(headers, more)).rejects.toThrow(WebhookVerificationError);
  });

  test("with two values of a header, of which a proxy and the program could read different ones", async () => {
    const { "webhook-id": id = "", ...others } = sign();
    await expect(verify({ ...others, "webhook-id": [id, "evt_2"] })).rejects.toThrow(WebhookVerificationError);
  });
});

test("a webhook of another time costs no signature, and any other one for each secret, however many it brings", async () => {
  const signing = vi.spyOn(crypto.subtle, "sign");
  const verifying = vi.spyOn(crypto.subtle, "verify");
  const old = sign(body, { at: new Date(now.getTime() - 301_000) });
  await expect(verify({ ...old, "webhook-signature": "v1,AAAA" })).rejects.toThrow("too old");
  expect(signing).toHaveBeenCalledTimes(0);
  const forged = {
    ...sign(),
    "webhook-signature": Array(100)
      .fill(`v1,${"A".repeat(43)}=`)
      .join(" "),
  };
  await expect(verify(forged, { secrets: [secret, makeSecret()] })).rejects.toThrow(WebhookVerificationError);
  expect(signing).toHaveBeenCalledTimes(2);
  expect(verifying).toHaveBeenCalledTimes(0);
  vi.restoreAllMocks();
});

test("a parsed body is a mistake of the program, which the error names", async () => {
  await expect(verifyWebhook(JSON.parse(body), sign(), secret, { now })).rejects.toThrow("rawBody");
});

test("a secret that is missing or too short is a mistake of the program, and never a key that a stranger knows", async () => {
  const asStranger = new Webhook("null").sign("evt_1", now, body);
  const headers = { ...sign(), "webhook-signature": asStranger };
  const short = `whsec_${Buffer.alloc(15, 1).toString("base64")}`;
  for (const wrong of [null, undefined, "", "null", "whsec_", "whsec_%", short, 7, [], [secret, null], [undefined]]) {
    const verifying = verifyWebhook(body, headers, wrong as string, { now });
    await expect(verifying).rejects.toThrow(TypeError);
    await expect(verifying).rejects.toThrow("secret");
    await expect(verifyWebhook(body, {}, wrong as string, { now })).rejects.toThrow("secret");
  }
});
