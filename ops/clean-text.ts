/** Control characters, lone surrogates, line separators and the marks that turn the direction of what follows. */
const UNCLEAN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const SPACES = /[\t\n\r\u2028\u2029]/u;

/**
 * Returns text of foreign origin (a revert reason, a memo, an endpoint's error) as one line that Postgres takes in text
 * and jsonb and that a log or a terminal shows as it is. Every control character and every lone surrogate is replaced
 * (by a space or U+FFFD) and never removed, so that no unclean text becomes equal to a name of ours, such as a memo.
 * @param maxLength code points; a longer text is cut and ends with "…"
 */
export function cleanText(text: string, maxLength: number): string {
  // Twice as many code units hold at least as many code points: a text of megabytes is not walked through.
  const points = Array.from(text.slice(0, 2 * maxLength));
  const isCut = points.length > maxLength || text.length > 2 * maxLength;
  const kept = isCut ? `${points.slice(0, maxLength - 1).join("")}…` : text;
  return kept.replace(UNCLEAN, (found) => (SPACES.test(found) ? " " : "\ufffd"));
}

/** True when Postgres takes a text as it is, in text and jsonb: it refuses NUL and lone surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes("\0") && text.isWellFormed();
}
