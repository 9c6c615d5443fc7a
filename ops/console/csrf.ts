import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Returns the token that the forms of a session contain. It is derived from the session's own token, which only the
 * operator's browser has, so another site can neither read nor guess it, and it ends with the session.
 */
export function makeFormToken(sessionToken: string): string {
  return createHmac("sha256", sessionToken).update("operator console form").digest("base64url");
}

/** Returns true for the form token of a session. */
export function isFormTokenOf(sessionToken: string, given: string): boolean {
  const [expected, actual] = [Buffer.from(makeFormToken(sessionToken)), Buffer.from(given)];
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
