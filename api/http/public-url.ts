/** The parts of the address under which buyers and wallets reach the service. */
type PublicUrlParts = {
  /** Path prefix of the service; empty when it has a host of its own. */
  base: string;
  hostname: string;
  isHttps: boolean;
};

/** The parsed parts by address. A process has one address; parsing it for each request would take a microsecond. */
const known = new Map<string, PublicUrlParts>();

/** Returns the parts of PUBLIC_URL. Throws for a text that is no URL. */
export function readPublicUrl(publicUrl: string): PublicUrlParts {
  const found = known.get(publicUrl);
  if (found) return found;
  const { pathname, hostname, protocol } = new URL(publicUrl);
  const parts = { base: pathname.replace(/\/$/, ""), hostname, isHttps: protocol === "https:" };
  known.set(publicUrl, parts);
  return parts;
}
