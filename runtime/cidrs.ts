import ipaddr from "ipaddr.js";

type Range = ReturnType<typeof ipaddr.parseCIDR>;

/** The prefix of IPv4-mapped IPv6 addresses, bits. */
const MAPPED_BITS = 96;

/**
 * Returns a range of addresses in its canonical form: `10.0.0.0/8`, `2001:db8::/32`. A single address becomes a range of
 * one, and a range of IPv4-mapped IPv6 addresses becomes the IPv4 range. Undefined for text that is not a range, and for
 * a range with host bits (`10.1.2.3/8`), which is usually a mistake.
 */
export function canonicalCidr(text: string): string | undefined {
  const [address = "", prefix] = text.split("/");
  if (!ipaddr.isValid(address) || address.includes("%")) return undefined;
  const parsed = ipaddr.parse(address);
  // ipaddr.js also reads octal and hexadecimal forms, which others read differently.
  if (parsed instanceof ipaddr.IPv4 && parsed.toString() !== address) return undefined;
  if (prefix === undefined) return canonicalCidr(`${address}/${parsed instanceof ipaddr.IPv4 ? 32 : 128}`);
  if (!ipaddr.isValidCIDR(text)) return undefined;
  const bits = Number(prefix);
  if (parsed instanceof ipaddr.IPv4)
    return ipaddr.IPv4.networkAddressFromCIDR(text).toString() === parsed.toString() ? `${parsed}/${bits}` : undefined;
  if (ipaddr.IPv6.networkAddressFromCIDR(text).toString() !== parsed.toString()) return undefined;
  return parsed.isIPv4MappedAddress() && bits >= MAPPED_BITS
    ? `${parsed.toIPv4Address()}/${bits - MAPPED_BITS}`
    : `${parsed}/${bits}`;
}

/**
 * Returns true when an address lies in one of these canonical ranges. An IPv4-mapped IPv6 address, as a dual-stack socket
 * reports it, counts as the IPv4 address. Text that is not an address lies in no range.
 */
export function isInCidrs(address: string, cidrs: readonly string[]): boolean {
  if (!ipaddr.isValid(address)) return false;
  const given = ipaddr.process(address);
  return cidrs.some((cidr) => isInRange(given, ipaddr.parseCIDR(cidr)));
}

/** Returns true when every address of a canonical range lies in another one. */
export function containsCidr(outer: string, inner: string): boolean {
  const [[outerAddress, outerBits], [innerAddress, innerBits]] = [ipaddr.parseCIDR(outer), ipaddr.parseCIDR(inner)];
  return innerBits >= outerBits && isInRange(innerAddress, [outerAddress, outerBits] as Range);
}

/** `match` throws for an address of the other family. */
function isInRange(address: ipaddr.IPv4 | ipaddr.IPv6, range: Range): boolean {
  if (address instanceof ipaddr.IPv4) return range[0] instanceof ipaddr.IPv4 && address.match(range[0], range[1]);
  return range[0] instanceof ipaddr.IPv6 && address.match(range[0], range[1]);
}
