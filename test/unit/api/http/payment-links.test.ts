import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPaymentId } from "../../../../api/http/payment-links.ts";
import { codePoint } from "../../../support/code-points.ts";

const host = "pay.example.com";
const id = `pay_${"0123456789abcdef".repeat(2)}`;
const encode = encodeURIComponent;
const link = `https://${host}/?pid=${id}`;

describe("the parser finds a payment in", () => {
  test.each([
    ["a bare id", id],
    ["a link with pid", link],
    ["a link with the id as its path", `https://${host}/${id}`],
    ["a link with another path and pid", `https://${host}/buy?pid=${id}`],
    ["a link whose pid comes before its path", `https://${host}/other?x=1&pid=${id}`],
    ["a link with an empty pid", `https://${host}/${id}?pid=`],
    ["a link of a subdomain", `https://eu.staging.${host}/?pid=${id}`],
    ["a link at another port", `https://${host}:8443/${id}`],
    ["a link in upper case", `HTTPS://PAY.Example.COM/?pid=${id}`],
    ["a link over plain HTTP", `http://${host}/?pid=${id}`],
    ["a link that a web view has added to", `${link}&returnUrl=app%3A%2F%2Fx&preferUniversalLinks=1`],
    ["a pairing URI", `wc:abc@2?relay-protocol=irn&symKey=1&pay=${encode(link)}`],
    ["a pairing URI that begins with it", `wc:abc@2?pay=${encode(link)}&symKey=1`],
    ["a pairing URI that holds it encoded twice", `wc:abc@2?pay=${encode(encode(link))}`],
  ])("%s, also encoded once and twice", (_what, text) => {
    expect(readPaymentId(text, host)).toBe(id);
    expect(readPaymentId(encode(text), host)).toBe(id);
    expect(readPaymentId(encode(encode(text)), host)).toBe(id);
  });
});

describe("the parser finds no payment in", () => {
  test.each([
    ["nothing", ""],
    ["another host's link", `https://evil.example/?pid=${id}`],
    ["a host that ends like ours", `https://evil${host}/?pid=${id}`],
    ["a host that begins like ours", `https://${host}.evil.example/?pid=${id}`],
    ["our host as a user name", `https://${host}@evil.example/?pid=${id}`],
    ["our host with a user name", `https://me@${host}/?pid=${id}`],
    ["our host after a backslash", `https://evil.example\\@${host}/?pid=${id}`],
    ["our host in the fragment", `https://evil.example/#@${host}/?pid=${id}`],
    ["our link as a parameter of another link", `https://evil.example/?pay=${encode(link)}`],
    ["a link with a line feed", `https://${host}/\n?pid=${id}`],
    ["another scheme", `javascript://${host}/?pid=${id}`],
    ["no scheme", `//${host}/?pid=${id}`],
    ["a pairing URI with another host's link", `wc:abc@2?pay=${encode(`https://evil.example/?pid=${id}`)}`],
    ["a pairing URI without one", `wc:abc@2?pid=${id}`],
    ["our host without a path", `https://${host}/`],
    ["a path that is more than the id", `https://${host}/x/${id}`],
    ["an id of another format", `https://${host}/?pid=pay_1`],
    ["an id with more behind it", `${id}0`],
    ["three encodings", encode(encode(encode(link)))],
    ["a broken encoding", `%E0%A4%A${id}`],
    ["a link without end", `${link}&x=${"a".repeat(5_000)}`],
  ])("%s", (_what, text) => {
    expect(readPaymentId(text, host)).toBeUndefined();
  });
});

test("the parser returns an id of ours that follows our host, or nothing, for any text", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "https://",
      "http://",
      host,
      "evil.example",
      "@",
      "/",
      "?pid=",
      "&pay=",
      "wc:",
      id,
      "%",
      "%2F",
      ".",
      "#",
      "\\",
      ":443",
    ),
    fc.string({ maxLength: 5 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join("");
      const found = readPaymentId(text, host);
      if (found === undefined) return;
      expect(found).toBe(id);
      if (text === id) return;
      const plain = decodeURIComponent(decodeURIComponent(text).replaceAll("%", "%25"));
      expect(plain.toLowerCase()).toMatch(/^(https?:\/\/|wc:)/);
      expect(plain.toLowerCase()).toContain(host);
    }),
    { numRuns: 5_000 },
  );
});

/** Returns every form of a link to this host: the link itself and a pairing URI around it, plain and encoded once or twice. */
function formsOf(authority: string): string[] {
  const links = ["https", "http"].flatMap((scheme) =>
    ["/?pid=", "/", "/buy?pid="].map((place) => `${scheme}://${authority}${place}${id}`),
  );
  const all = links.flatMap((one) => [
    one,
    `wc:abc@2?pay=${encode(one)}&symKey=1`,
    `wc:abc@2?symKey=1&pay=${encode(one)}`,
  ]);
  return all.flatMap((one) => [one, encode(one), encode(encode(one))]);
}

test("the parser finds no payment in a link to another host, even when that host resembles ours", () => {
  const likeOurs = fc
    .tuple(
      fc.domain(),
      fc.constantFrom("", ".", "-", "@", ":443@", "%2e", "%40", "\\", "#", "?", "/", "%00", "\t", ";"),
    )
    .chain(([domain, between]) =>
      fc.constantFrom(
        `${host}${between}${domain}`,
        `${domain}${between || "x"}${host}`,
        domain,
        `x${host}`,
        `${host}x`,
      ),
    )
    // The host is still ours when the domain ends up in a subdomain, the path, the query or the fragment.
    .filter((authority) => {
      const hostname = URL.parse(`https://${authority}/`)?.hostname ?? "";
      return hostname !== host && !hostname.endsWith(`.${host}`);
    });
  fc.assert(
    fc.property(likeOurs, (authority) => {
      for (const form of formsOf(authority)) expect([form, readPaymentId(form, host)]).toEqual([form, undefined]);
    }),
    { numRuns: 2_000 },
  );
});

test("the parser finds the payment in a link to any subdomain and port of our host", () => {
  const label = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
  fc.assert(
    fc.property(fc.array(label, { maxLength: 3 }), fc.option(fc.integer({ min: 1, max: 65_535 })), (labels, port) => {
      const authority = [...labels, host].join(".") + (port === null ? "" : `:${port}`);
      for (const form of formsOf(authority)) expect([form, readPaymentId(form, host)]).toEqual([form, id]);
      for (const form of formsOf(authority.toUpperCase())) expect(readPaymentId(form, host)).toBe(id);
    }),
  );
});

test("the parser never throws and returns only complete ids", () => {
  const text = fc.oneof(fc.string({ unit: codePoint, maxLength: 200 }), fc.webUrl(), fc.constant("%".repeat(4_096)));
  fc.assert(
    fc.property(text, fc.constantFrom("", `https://${host}/`, `wc:x@2?pay=`, id), (given, before) => {
      expect([undefined, id]).toContain(readPaymentId(before + given, host));
    }),
    { numRuns: 2_000 },
  );
});
