/** Control characters, lone surrogates, line separators and marks that change the text direction (runtime/clean-text.ts). */
const UNCLEAN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
/** Those of them that JSON.stringify does not escape. */
const UNESCAPED = /[\u007f-\u009f\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const SPACES = /[\t\n\r\u2028\u2029]/u;

/**
 * Returns text that may come from the service or from a file as one line that a terminal only shows. What a terminal would
 * carry out is replaced by a space or U+FFFD.
 */
export function cleanLine(text: string): string {
  return text.replace(UNCLEAN, (found) => (SPACES.test(found) ? " " : "\ufffd"));
}

/** Returns a value as JSON that a terminal only shows. A program that parses it gets the same value. */
export function toCleanJson(value: unknown, indent?: number): string {
  const escapeOne = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value, null, indent).replace(UNESCAPED, escapeOne);
}
