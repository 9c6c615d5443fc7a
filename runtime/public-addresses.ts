import ipaddr from "ipaddr.js";

/**
 * Returns true for an address of the public internet. Private, loopback, link-local (used by metadata services),
 * carrier and documentation ranges are not public, and neither are IPv6 forms that embed such an IPv4 address.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return address.range() === "unicast";
  if (address.isIPv4MappedAddress()) return isPublicAddress(address.toIPv4Address().toString());
  // ipaddr.js gives NAT64 (64:ff9b::/96), 6to4 and Teredo ranges of their own; only plain global unicast passes.
  return address.range() === "unicast" && address.match(globalUnicast);
}

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");
