import { expect, test } from "vitest";
import { ForeignLinkError, GatewayClient } from "../../../client/index.ts";
import { json, startScriptedService } from "./scripted-service.ts";

const { requests, script, baseUrl: address } = await startScriptedService();
/** A client of `pay.example.com`, whose requests go to the scripted service. */
const gateway = new GatewayClient({
  baseUrl: "https://pay.example.com/service",
  appId: "app",
  fetch: (input, init) => fetch(String(input).replace("https://pay.example.com", address), init),
});

const id = `pay_${"0a".repeat(16)}`;
const link = `https://pay.example.com/?pid=${id}`;
const pairing = `wc:7f6e@2?relay-protocol=irn&pay=${encodeURIComponent(link)}`;

test.each([id, link, `https://pay.example.com/${id}`, `https://shop.pay.example.com/${id}`, pairing])(
  "a wallet takes %s",
  async (text) => {
    script(json(200, {}));
    for (const given of [text, encodeURIComponent(text), encodeURIComponent(encodeURIComponent(text))])
      await gateway.get(given);
    expect(requests).toHaveLength(3);
  },
);

test.each([
  `https://evil.example/?pid=${id}`,
  `https://evilpay.example.com/?pid=${id}`,
  `https://pay.example.com.evil.example/${id}`,
  `https://shop.pay.example.com.evil.example/${id}`,
  `https://pay.example.com@evil.example/${id}`,
  `https://shop.pay.example.com.evil.example/${id}`,
  `https://evil.example\\@pay.example.com/${id}`,
  `https://evil.example/\nhttps://pay.example.com/${id}`,
  `ftp://pay.example.com/${id}`,
  pairing.replace("pay.example.com", "evil.example"),
  `evil.example/${id}`,
])("a wallet requests nothing for %s", async (text) => {
  script(json(200, {}));
  for (const given of [text, encodeURIComponent(text), encodeURIComponent(encodeURIComponent(text))]) {
    await expect(gateway.get(given)).rejects.toThrow(ForeignLinkError);
    const paying = gateway.pay(given, [], { choose: ([option]) => option });
    await expect(paying).rejects.toThrow(ForeignLinkError);
  }
  expect(requests).toEqual([]);
});
