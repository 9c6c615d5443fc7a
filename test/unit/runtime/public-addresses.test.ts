import { expect, test } from "vitest";
import { isPublicAddress } from "../../../runtime/public-addresses.ts";

test.each(["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8"])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  ["loopback", "127.0.0.1"],
  ["all of loopback", "127.255.1.2"],
  ["this network", "0.0.0.0"],
  ["private", "10.1.2.3"],
  ["private", "172.16.0.1"],
  ["private", "192.168.1.1"],
  ["link-local, where cloud metadata is", "169.254.169.254"],
  ["carrier", "100.64.0.1"],
  ["benchmarking", "198.18.0.1"],
  ["documentation", "192.0.2.1"],
  ["multicast", "224.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["reserved", "240.0.0.1"],
  ["loopback of IPv6", "::1"],
  ["unspecified", "::"],
  ["unique local", "fd00::1"],
  ["link-local of IPv6", "fe80::1"],
  ["multicast of IPv6", "ff02::1"],
  ["documentation of IPv6", "2001:db8::1"],
  ["a mapped private address", "::ffff:10.0.0.1"],
  ["a mapped loopback, in hex", "::ffff:7f00:1"],
  ["NAT64 of a private address", "64:ff9b::a00:1"],
  ["6to4 of a private address", "2002:0a00:0001::1"],
  ["Teredo", "2001::1"],
  ["a deprecated IPv4-compatible address", "::10.0.0.1"],
  ["an address with a zone", "fe80::1%eth0"],
  ["no address", "localhost"],
])("%s (%s) is not", (_what, address) => {
  expect(isPublicAddress(address)).toBe(false);
});
