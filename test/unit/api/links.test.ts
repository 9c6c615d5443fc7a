import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPaymentId } from "../../../api/links.ts";

const host = "pay.example.com";
const id = `pay_${"0123456789abcdef".repeat(2)}`;
const encode = encodeURIComponent;
const link = `https://${host}/?pid=${id}`;

describe("a payment is found in", () => {
  test.each([
    ["a bare id", id],
    ["a link with pid", link],
    ["a link with the id as its path", `https://${host}/${id}`],
    ["a link with another path and pid", `https://${host}/buy?pid=${id}`],
    ["a link whose pid stands before its path", `https://${host}/other?x=1&pid=${id}`],
    ["a link with an empty pid", `https://${host}/${id}?pid=`],
    ["a link of a subdomain", `https://eu.staging.${host}/?pid=${id}`],
    ["a link at another port", `https://${host}:8443/${id}`],
    ["a link in capitals", `HTTPS://PAY.Example.COM/?pid=${id}`],
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

describe("no payment is found in", () => {
  test.each([
    ["nothing", ""],
    ["another host's link", `https://evil.example/?pid=${id}`],
    ["a host that ends like ours", `https://evil${host}/?pid=${id}`],
    ["a host that begins like ours", `https://${host}.evil.example/?pid=${id}`],
    ["our host as a user name", `https://${host}@evil.example/?pid=${id}`],
    ["our host with a user name", `https://me@${host}/?pid=${id}`],
    ["our host behind a backslash", `https://evil.example\\@${host}/?pid=${id}`],
    ["our host in the fragment", `https://evil.example/#@${host}/?pid=${id}`],
    ["our link as a parameter of another", `https://evil.example/?pay=${encode(link)}`],
    ["a link with a line feed", `https://${host}/\n?pid=${id}`],
    ["another scheme", `javascript://${host}/?pid=${id}`],
    ["no scheme", `//${host}/?pid=${id}`],
    ["a pairing URI with another host's link", `wc:abc@2?pay=${encode(`https://evil.example/?pid=${id}`)}`],
    ["a pairing URI without one", `wc:abc@2?pid=${id}`],
    ["our host alone", `https://${host}/`],
    ["a path that is more than the id", `https://${host}/x/${id}`],
    ["an id that is not ours", `https://${host}/?pid=pay_1`],
    ["an id with more behind it", `${id}0`],
    ["three encodings", encode(encode(encode(link)))],
    ["a broken encoding", `%E0%A4%A${id}`],
    ["a link without end", `${link}&x=${"a".repeat(5_000)}`],
  ])("%s", (_what, text) => {
    expect(readPaymentId(text, host)).toBeUndefined();
  });
});

test("whatever the text, it is our id behind our host, or nothing", () => {
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

/** Every form of a link to this host: as it is and in a pairing URI, plain and encoded once or twice. */
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

test("whatever other host a link names, and however like ours it is written, no payment is found in it", () => {
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
    // What is left of it is ours when the domain ends up in a subdomain, the path, the query or the fragment.
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

test("whatever subdomain and port of ours a link names, its payment is found", () => {
  const label = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
  fc.assert(
    fc.property(fc.array(label, { maxLength: 3 }), fc.option(fc.integer({ min: 1, max: 65_535 })), (labels, port) => {
      const authority = [...labels, host].join(".") + (port === null ? "" : `:${port}`);
      for (const form of formsOf(authority)) expect([form, readPaymentId(form, host)]).toEqual([form, id]);
      for (const form of formsOf(authority.toUpperCase())) expect(readPaymentId(form, host)).toBe(id);
    }),
  );
});

test("no text makes it throw, and what it finds is always a whole id", () => {
  const text = fc.oneof(fc.string({ unit: "binary", maxLength: 200 }), fc.webUrl(), fc.constant("%".repeat(4_096)));
  fc.assert(
    fc.property(text, fc.constantFrom("", `https://${host}/`, `wc:x@2?pay=`, id), (given, before) => {
      expect([undefined, id]).toContain(readPaymentId(before + given, host));
    }),
    { numRuns: 2_000 },
  );
});
