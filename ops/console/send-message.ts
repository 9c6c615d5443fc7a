import type { FastifyReply, FastifyRequest } from "fastify";
import { html } from "../../runtime/html.ts";
import { findOperatorOf } from "../operator-login/session-guard.ts";
import { type ConsolePage, sendPage } from "./console-page.ts";

/** Sends a page with one sentence, also to a request whose session is not known. */
export function sendMessage(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, title, text }: { status: number; title: string; text: string },
): FastifyReply {
  const page: ConsolePage = { title, body: html`<p class="warning" role="alert">${text}</p>` };
  return sendPage(reply, findOperatorOf(request), page, status);
}
