/** Longest link that is looked at, characters. */
const LONGEST = 4_096;
/** The router has decoded a path once; deployed wallets encode a link twice. */
const MOST_DECODINGS = 2;

/**
 * The payment id in what a buyer's wallet was given (specification, 4.3 rule 6): a bare id, our checkout link with the id
 * in its path or in `pid`, or a pairing URI whose `pay` holds such a link; as it is or percent-encoded. Undefined for
 * anything else: the host is checked before anything is taken out of a link.
 * @param host the checkout host; its subdomains are trusted too
 */
export function readPaymentId(text: string, host: string): string | undefined {
  let given = text;
  for (let decodings = 0; given.length <= LONGEST; decodings += 1) {
    const id = isPaymentId(given) ? given : (readPairing(given, host) ?? readCheckoutLink(given, host));
    if (id !== undefined || decodings === MOST_DECODINGS) return id;
    const decoded = decode(given);
    if (decoded === undefined || decoded === given) return undefined;
    given = decoded;
  }
  return undefined;
}

const isPaymentId = (text: string): boolean => /^pay_[0-9a-f]{32}$/.test(text);

/** `wc:…?…&pay=<link>`; the link is encoded there, perhaps twice. */
function readPairing(text: string, host: string): string | undefined {
  if (!/^wc:/i.test(text)) return undefined;
  const pay = new URLSearchParams(text.slice(text.indexOf("?") + 1)).get("pay") ?? "";
  return readCheckoutLink(pay, host) ?? readCheckoutLink(decode(pay) ?? "", host);
}

function readCheckoutLink(text: string, host: string): string | undefined {
  // A URL parser drops line feeds and takes a backslash for a slash: nobody who means well sends either.
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
