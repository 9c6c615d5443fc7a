import type { IncomingHttpHeaders } from "node:http";
import { SESSION_MS } from "../../payments/operators/sign-in.ts";

/** The prefix makes browsers refuse the cookie from another host, and without TLS. */
const nameOf = (isSecure: boolean) => (isSecure ? "__Host-board" : "board");

/** Returns the header value that stores a session's token; without a token, the one that deletes it. */
export function writeSessionCookie(token: string | undefined, { isSecure }: { isSecure: boolean }): string {
  const life = token === undefined ? 0 : SESSION_MS / 1_000;
  const secure = isSecure ? "; Secure" : "";
  return `${nameOf(isSecure)}=${token ?? ""}; Path=/; Max-Age=${life}; HttpOnly; SameSite=Strict${secure}`;
}

/** Returns the token of the session cookie; undefined without one. */
export function readSessionCookie(
  headers: IncomingHttpHeaders,
  { isSecure }: { isSecure: boolean },
): string | undefined {
  const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim().split("="));
  return pairs.find(([name]) => name === nameOf(isSecure))?.[1] || undefined;
}
