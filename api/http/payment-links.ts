/** Longest link that is read, characters. */
const MAX_LENGTH = 4_096;
/** The router has decoded a path once already; deployed wallets encode a link twice. */
const MAX_DECODINGS = 2;

/**
 * Returns the payment id in the text that a wallet has scanned (specification, 4.3 rule 6): a bare id, a checkout link with
 * the id in its path or in `pid`, or a pairing URI whose `pay` holds such a link; each plain or percent-encoded. Returns
 * undefined for anything else, also for a link to another host.
 * @param host the checkout host; its subdomains are trusted too
 */
export function readPaymentId(text: string, host: string): string | undefined {
  let given = text;
  for (let decodings = 0; given.length <= MAX_LENGTH; decodings += 1) {
    const id = isPaymentId(given) ? given : (readPairing(given, host) ?? readCheckoutLink(given, host));
    if (id !== undefined || decodings === MAX_DECODINGS) return id;
    const decoded = decode(given);
    if (decoded === undefined || decoded === given) return undefined;
    given = decoded;
  }
  return undefined;
}

const isPaymentId = (text: string): boolean => /^pay_[0-9a-f]{32}$/.test(text);

/** Reads `wc:…?…&pay=<link>`, where the link is encoded once or twice. */
function readPairing(text: string, host: string): string | undefined {
  if (!/^wc:/i.test(text)) return undefined;
  const pay = new URLSearchParams(text.slice(text.indexOf("?") + 1)).get("pay") ?? "";
  return readCheckoutLink(pay, host) ?? readCheckoutLink(decode(pay) ?? "", host);
}

function readCheckoutLink(text: string, host: string): string | undefined {
  // URL parsers drop line feeds and treat a backslash as a slash, which can disguise another host: refuse both.
  if (!/^https?:\/\//i.test(text) || !/^[!-[\]-~]+$/.test(text)) return undefined;
  const url = URL.parse(text);
  if (!url || !isTrusted(url.hostname, host)) return undefined;
  if (url.username !== "" || url.password !== "") return undefined;
  const id = url.searchParams.get("pid") || url.pathname.slice(1);
  return isPaymentId(id) ? id : undefined;
}

const isTrusted = (hostname: string, host: string): boolean => hostname === host || hostname.endsWith(`.${host}`);

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
