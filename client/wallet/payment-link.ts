import { ForeignLinkError } from "./wallet-errors.ts";

/** Wallets encode links up to this often. */
const MAX_ENCODINGS = 2;

/**
 * Throws a `ForeignLinkError` unless a payment is named by an id, or by a link to the service: its checkout page, or a pairing
 * URI whose `pay` is such a link, each plain or percent-encoded (specification, 4.3 rule 6).
 * @param host the host name of the service; its subdomains are trusted too
 */
export function requireOwnLink(payment: string, host: string): void {
  let text = payment;
  for (let encodings = 0; ; encodings++) {
    if (/^[\w-]+$/.test(text) || isOwnLink(text, host) || isOwnLink(payOf(text), host)) return;
    const decoded = decode(text);
    if (encodings === MAX_ENCODINGS || decoded === text)
      throw new ForeignLinkError(`the payment is neither an id nor a link of ${host}`);
    text = decoded;
  }
}

/** Returns the link in a pairing URI (`wc:…?…&pay=…`), and no text for anything else. */
const payOf = (text: string): string =>
  /^wc:/i.test(text) ? decode(new URLSearchParams(text.slice(text.indexOf("?") + 1)).get("pay") ?? "") : "";

function isOwnLink(text: string, host: string): boolean {
  // URL parsers drop line feeds and treat a backslash as a slash, which can disguise another host: refuse both.
  if (!/^https?:\/\/[!-[\]-~]+$/i.test(text) || !URL.canParse(text)) return false;
  const { hostname, username, password } = new URL(text);
  return username === "" && password === "" && (hostname === host || hostname.endsWith(`.${host}`));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
