import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  findOperatorRequest,
  insertOperatorRequest,
  type OperatorRequestRow,
} from "../../db/queries/operator-requests.ts";
import { newId } from "../../payments/ids.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import { isActionName, requestedActions } from "../../payments/operators/requested-actions.ts";
import { operatorOf } from "../operator-login/session-guard.ts";
import { actionForms } from "./action-forms.ts";
import { confirmPage } from "./confirm-page.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { sendPage } from "./console-page.ts";
import { describeSubject } from "./describe-subject.ts";
import { findFormProblem, readForm } from "./forms.ts";
import { requestPage } from "./request-page.ts";
import { sendMessage } from "./send-message.ts";

/** How long the page of a request waits for a worker before it is sent, and how often it reads the request, milliseconds. */
const WAIT_MS = 3_000;
const READ_EVERY_MS = 150;

type ActionRequest = FastifyRequest<{ Params: { action: string; subject: string } }>;

/** Serves the pages that confirm an action, request it, and show what became of it. `serveLogin` has set the parser of forms. */
export function serveActions(app: FastifyInstance, deps: ConsoleDeps): void {
  const { db } = deps;
  app.get("/console/actions/:action/:subject", async (request: ActionRequest, reply) => {
    const { action, subject } = request.params;
    if (!isActionName(action)) return sendNoAction(request, reply);
    const operator = operatorOf(request);
    if (!includesRole(operator.role, "operator")) return sendViewerRefusal(request, reply);
    if (!isId(subject)) return sendNoSubject(request, reply);
    const { sent, shown } = await describeSubject(deps, action, subject);
    const hidden = { request: newId("oreq", deps.now()), ...sent };
    const path = `/console/actions/${action}/${encodeURIComponent(subject)}`;
    return sendPage(
      reply,
      operator,
      confirmPage(operator, { form: actionForms[action], path, subject, hidden, shown }),
    );
  });

  app.post("/console/actions/:action/:subject", async (request: ActionRequest, reply) => {
    const { action, subject } = request.params;
    const operator = operatorOf(request);
    const form = readForm(request.body);
    const formProblem = findFormProblem(request, form);
    if (formProblem !== undefined) {
      deps.log.warn({ operator: operator.name, action }, "console form refused");
      return sendMessage(request, reply, { status: 403, title: "Nothing was changed", text: formProblem });
    }
    const { token: _token, request: id = "", ...args } = form;
    if (!isActionName(action)) return sendNoAction(request, reply);
    if (!includesRole(operator.role, "operator")) return sendViewerRefusal(request, reply);
    const problem = /^oreq_[0-9a-f]{32}$/.test(id)
      ? requestedActions[action].validate({ subject, args })
      : "request: expected the id that the page has given";
    if (problem !== undefined)
      return sendMessage(request, reply, { status: 422, title: "Nothing was changed", text: problem });
    const requested = { operator: operator.name, action, subject };
    const row = { id, ...requested, address: request.ip, args: JSON.stringify(args) };
    // The id comes from the page that was confirmed, so a form that is sent twice is one request.
    if (await insertOperatorRequest(db, row)) deps.log.info({ ...requested, request: id }, "operator action requested");
    else if (!isDeepStrictEqual(await findRequested(deps, id), { ...requested, args }))
      return sendMessage(request, reply, {
        status: 409,
        title: "Nothing was changed",
        text: "This page has requested an action before, with other input. Open the page of the action again.",
      });
    return reply.redirect(`/console/requests/${id}`, 303);
  });

  app.get<{ Params: { id: string } }>("/console/requests/:id", async (request, reply) => {
    const { id } = request.params;
    const row = isId(id) ? await awaitEnd(deps, id) : undefined;
    if (!row) return sendMessage(request, reply, { status: 404, title: "Request", text: "There is no such request." });
    return sendPage(reply, operatorOf(request), requestPage(row, deps.now()));
  });
}

/** Returns what a request asks for, and of whom. */
async function findRequested({ db }: ConsoleDeps, id: string): Promise<object | undefined> {
  const row = await findOperatorRequest(db, id);
  return row && { operator: row.operator, action: row.action, subject: row.subject, args: row.args };
}

/** Returns a request once a worker has carried it out, or as it is after a short time. */
async function awaitEnd({ db }: ConsoleDeps, id: string): Promise<OperatorRequestRow | undefined> {
  const until = performance.now() + WAIT_MS;
  let row = await findOperatorRequest(db, id);
  while (row?.state === "requested" && performance.now() < until) {
    await pause(READ_EVERY_MS);
    row = await findOperatorRequest(db, id);
  }
  return row;
}

/** Returns true for a text that may be an id. Postgres refuses texts with a NUL. */
const isId = (text: string) => /^\w{1,64}$/.test(text);

const sendNoSubject = (request: FastifyRequest, reply: FastifyReply) =>
  sendMessage(request, reply, { status: 404, title: "Nothing was changed", text: "There is nothing with this id." });

const sendNoAction = (request: FastifyRequest, reply: FastifyReply) =>
  sendMessage(request, reply, { status: 404, title: "Nothing was changed", text: "There is no such action." });

const sendViewerRefusal = (request: FastifyRequest, reply: FastifyReply) =>
  sendMessage(request, reply, { status: 403, title: "Nothing was changed", text: "A viewer can change nothing." });
