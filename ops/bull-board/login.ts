import { createHash, timingSafeEqual } from "node:crypto";

export type Login = { user: string; password: string };

/** Compares digests, so that the time taken tells neither length nor prefix of what was expected. */
function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** The user that an `Authorization: Basic` header names, if its password is right too. */
export function findUser(header: string | undefined, login: Login): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  // Both are always compared: an early return would tell a right user name from a wrong one.
  const userRight = same(pair.slice(0, Math.max(colon, 0)), login.user);
  const passwordRight = same(pair.slice(colon + 1), login.password);
  return colon >= 0 && userRight && passwordRight ? login.user : undefined;
}
