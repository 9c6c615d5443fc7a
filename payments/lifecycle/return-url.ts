/**
 * Parses a shop's URL to which buyers may be redirected: https, or http on this machine, where a developer's shop has no TLS.
 * Returns null for anything else.
 */
export function parseReturnUrl(text: string): URL | null {
  const url = URL.parse(text);
  const isAccepted = url?.protocol === "https:" || (url?.protocol === "http:" && thisMachine.test(url.hostname));
  return isAccepted ? url : null;
}

/** Hosts that lead to the machine itself (RFC 6761, RFC 5735, RFC 4291), as a URL parser spells them. */
const thisMachine = /^((.+\.)?localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;
