import { randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { nameRequester, type Requester } from "../../payments/requester.ts";

/**
 * What a browser has for itself, so that its requests are one requester's: a random cookie that no script reads and no
 * other site's request carries. It is not stored; only a hash of it is.
 */
const COOKIE = "pay_session";
const BYTES = 16;
const form = /^[A-Za-z0-9_-]{22}$/;
/** Longer than any payment is open, seconds. */
const MAX_AGE_S = 86_400;

/** Returns the checkout session of a request, which gets one with the answer when it has none. */
export function openSession(request: FastifyRequest, reply: FastifyReply, publicUrl: string): Requester {
  const known = readCookie(request.headers.cookie);
  const session = known ?? randomBytes(BYTES).toString("base64url");
  if (known === undefined) {
    const { pathname, protocol } = new URL(publicUrl);
    const path = pathname.replace(/\/$/, "") || "/";
    const secure = protocol === "https:" ? "; Secure" : "";
    reply.header(
      "set-cookie",
      `${COOKIE}=${session}; Path=${path}; Max-Age=${MAX_AGE_S}; HttpOnly; SameSite=Lax${secure}`,
    );
  }
  return nameRequester("session", [session], { isOne: true });
}

function readCookie(header: string | undefined): string | undefined {
  for (const part of (header ?? "").split(";")) {
    const [name, value] = part.trim().split("=");
    if (name === COOKIE && value !== undefined && form.test(value)) return value;
  }
  return undefined;
}
