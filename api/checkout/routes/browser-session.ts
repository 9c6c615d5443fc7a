import { randomUUID } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { nameRequester, type Requester } from "../../../payments/requester.ts";
import { readPublicUrl } from "../../http/public-url.ts";

/**
 * The cookie that identifies a browser as one requester: a random value that scripts cannot read and that requests from
 * other sites do not carry. The service stores only a hash of it.
 */
const COOKIE = "pay_session";
const pattern = /^[A-Za-z0-9_-]{22}$/;
/** Longer than a payment can be open, seconds. */
const MAX_AGE_S = 86_400;

/** Returns the requester of a browser's session; sets the session cookie on the reply when the request has none. */
export function openSession(request: FastifyRequest, reply: FastifyReply, publicUrl: string): Requester {
  return nameRequester("session", [keepSession(request, reply, publicUrl)], { isOne: true });
}

/** Returns the value of a browser's session cookie; sets the cookie on the reply when the request has none. */
export function keepSession(request: FastifyRequest, reply: FastifyReply, publicUrl: string): string {
  const present = readCookie(request.headers.cookie);
  // 122 random bits, from bytes that Node has generated in advance.
  const session = present ?? Buffer.from(randomUUID().replaceAll("-", ""), "hex").toString("base64url");
  if (present === undefined) {
    const { base, isHttps } = readPublicUrl(publicUrl);
    const path = base || "/";
    const secure = isHttps ? "; Secure" : "";
    reply.header(
      "set-cookie",
      `${COOKIE}=${session}; Path=${path}; Max-Age=${MAX_AGE_S}; HttpOnly; SameSite=Lax${secure}`,
    );
  }
  return session;
}

function readCookie(header: string | undefined): string | undefined {
  for (const part of (header ?? "").split(";")) {
    const [name, value] = part.trim().split("=");
    if (name === COOKIE && value !== undefined && pattern.test(value)) return value;
  }
  return undefined;
}
