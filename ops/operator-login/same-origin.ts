import type { IncomingHttpHeaders } from "node:http";

/**
 * Returns true for a request from a page of another site, to which the browser adds the login. Browsers send Sec-Fetch-Site, and
 * over plain HTTP only Origin. A request without both does not come from a browser.
 */
export function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}
