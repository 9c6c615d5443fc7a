import ipaddr from "ipaddr.js";

/**
 * True for an address of the public internet. Private, loopback, link-local (metadata services live there), carrier
 * and documentation ranges are not, nor IPv6 forms that carry such an IPv4 address inside them.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address.kind() === "ipv4") return address.range() === "unicast";
  const v6 = address as ipaddr.IPv6;
  if (v6.isIPv4MappedAddress()) return isPublicAddress(v6.toIPv4Address().toString());
  // NAT64 (64:ff9b::/96), 6to4, Teredo and the like have ranges of their own; only plain global unicast is left.
  return v6.range() === "unicast" && v6.match(globalUnicast);
}

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");
