import type { FastifyReply, FastifyRequest } from "fastify";
import type { OperatorRole } from "../../payments/operators/operators.ts";
import { findSignedIn } from "../../payments/operators/sign-in.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import { readSessionCookie } from "./session-cookie.ts";

/** The operator of a request's session, and the session's token, which is a secret. */
export type SignedIn = { name: string; role: OperatorRole; token: string };

const signedIn = new WeakMap<FastifyRequest, SignedIn>();

/**
 * Finds the operator of the request's session. Without one, it sends a page's request to the login and refuses any other,
 * and returns the reply.
 */
export async function requireSession(
  deps: Pick<PaymentDeps, "db" | "now">,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const token = readSessionCookie(request.headers, { isSecure: request.protocol === "https" });
  const operator = token === undefined ? undefined : await findSignedIn(deps, token);
  if (token !== undefined && operator) {
    signedIn.set(request, { ...operator, token });
    return undefined;
  }
  const isPage = request.headers.accept?.includes("text/html") === true;
  return isPage ? reply.redirect("/login", 303) : reply.code(401).send({ error: "Log in at /login." });
}

/** Returns the operator of a request; undefined for one that `requireSession` has not let through. */
export const findOperatorOf = (request: FastifyRequest): SignedIn | undefined => signedIn.get(request);

/** Returns the operator of a request that `requireSession` has let through. Throws for any other request. */
export function operatorOf(request: FastifyRequest): SignedIn {
  const operator = findOperatorOf(request);
  if (!operator) throw new Error("the request has no session");
  return operator;
}
