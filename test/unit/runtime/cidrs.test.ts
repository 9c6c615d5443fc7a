import { describe, expect, test } from "vitest";
import { canonicalCidr, containsCidr, isInCidrs } from "../../../runtime/cidrs.ts";

describe("a range in its canonical form", () => {
  test.each([
    ["an IPv4 range", "10.0.0.0/8", "10.0.0.0/8"],
    ["an IPv4 address", "192.0.2.7", "192.0.2.7/32"],
    ["an IPv6 range", "2001:0DB8::/32", "2001:db8::/32"],
    ["an IPv6 address", "2001:db8::1", "2001:db8::1/128"],
    ["a range of IPv4-mapped addresses", "::ffff:10.0.0.0/104", "10.0.0.0/8"],
    ["an IPv4-mapped address", "::ffff:10.1.2.3", "10.1.2.3/32"],
    ["every IPv4 address", "0.0.0.0/0", "0.0.0.0/0"],
  ])("is the same range: %s", (_what, text, canonical) => {
    expect(canonicalCidr(text)).toBe(canonical);
  });

  test.each([
    "",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10.0.0.0/8 ",
    "10.1.2.3/8",
    "2001:db8::1/32",
    "10/8",
    "010.0.0.0/8",
    "0x0a.0.0.0/8",
    "fe80::1%eth0",
    "localhost",
  ])("does not exist for %j", (text) => {
    expect(canonicalCidr(text)).toBeUndefined();
  });
});

describe("an address lies in a range", () => {
  test.each([
    ["10.1.2.3", ["192.0.2.0/24", "10.0.0.0/8"]],
    ["::ffff:10.1.2.3", ["10.0.0.0/8"]],
    ["::ffff:a01:203", ["10.0.0.0/8"]],
    ["2001:db8::1", ["2001:db8::/32"]],
    ["fe80::1%eth0", ["fe80::/10"]],
  ])("%s in %j", (address, cidrs) => {
    expect(isInCidrs(address, cidrs)).toBe(true);
  });

  test.each([
    ["11.1.2.3", ["10.0.0.0/8"]],
    ["::ffff:11.1.2.3", ["10.0.0.0/8"]],
    ["2001:db9::1", ["2001:db8::/32"]],
    ["10.1.2.3", ["::/0"]],
    ["2001:db8::1", ["0.0.0.0/0"]],
    ["", ["0.0.0.0/0", "::/0"]],
    ["unix", ["0.0.0.0/0", "::/0"]],
    ["10.1.2.3", []],
  ])("%s not in %j", (address, cidrs) => {
    expect(isInCidrs(address, cidrs)).toBe(false);
  });
});

test("a range contains itself and narrower ranges of its family, and no wider one", () => {
  expect(containsCidr("10.0.0.0/8", "10.0.0.0/8")).toBe(true);
  expect(containsCidr("10.0.0.0/8", "10.9.0.0/16")).toBe(true);
  expect(containsCidr("10.9.0.0/16", "10.0.0.0/8")).toBe(false);
  expect(containsCidr("10.0.0.0/16", "10.0.0.0/8")).toBe(false);
  expect(containsCidr("10.0.0.0/8", "11.0.0.0/16")).toBe(false);
  expect(containsCidr("0.0.0.0/0", "::/0")).toBe(false);
  expect(containsCidr("::/0", "0.0.0.0/0")).toBe(false);
});
