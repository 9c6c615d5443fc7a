/** Control characters, lone surrogates, line separators and marks that change the text direction. */
const UNCLEAN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const SPACES = /[\t\n\r\u2028\u2029]/u;

/**
 * Returns untrusted text (a revert reason, a memo, an endpoint's error) as one line that Postgres accepts in text and
 * jsonb and that is safe to show in a log or terminal. Control characters and lone surrogates are replaced by a space or
 * U+FFFD. They are never removed, so that unclean text cannot become equal to one of our own names, such as a memo.
 * @param maxLength code points; longer text is cut and ends with "…"
 */
export function cleanText(text: string, maxLength: number): string {
  // A code point takes at most two code units, so a text of megabytes is not read to its end.
  const points = Array.from(text.slice(0, 2 * maxLength));
  const isCut = points.length > maxLength || text.length > 2 * maxLength;
  const kept = isCut ? `${points.slice(0, maxLength - 1).join("")}…` : text;
  return kept.replace(UNCLEAN, (found) => (SPACES.test(found) ? " " : "\ufffd"));
}

/**
 * Returns a JSON text with the same values that is safe to show in a terminal: characters that `cleanText` would replace are escaped. The
 * line feeds between members stay.
 */
export function escapeJson(json: string): string {
  const toEscape = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(UNCLEAN, (found) => (found === "\n" ? found : toEscape(found)));
}

/** Returns true when Postgres accepts a text unchanged in text and jsonb: it rejects NUL and lone surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}
