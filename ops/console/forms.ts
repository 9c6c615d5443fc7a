import type { FastifyRequest } from "fastify";
import { isFromElsewhere } from "../operator-login/same-origin.ts";
import { operatorOf } from "../operator-login/session-guard.ts";
import { isFormTokenOf } from "./csrf.ts";

/** Returns the fields of a form. */
export function readForm(body: unknown): Record<string, string> {
  return body instanceof URLSearchParams ? Object.fromEntries(body) : {};
}

/** Returns a sentence when a form does not come from a page of the request's own session. */
export function findFormProblem(request: FastifyRequest, { token }: Record<string, string>): string | undefined {
  const isOwn = token !== undefined && isFormTokenOf(operatorOf(request).token, token);
  return isOwn && !isFromElsewhere(request.headers)
    ? undefined
    : "The form is not from a page of this session. Open the page and confirm there.";
}
