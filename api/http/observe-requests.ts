import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { ErrorCode } from "../../payments/error-codes.ts";
import type { Caller } from "../../payments/merchants/callers.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import type { Hold } from "../polling/waiters.ts";
import type { RequestLog } from "./request-log.ts";

type ObserveDeps = { metrics: Pick<Metrics, "httpRequests" | "httpSeconds">; requestLog: Pick<RequestLog, "add"> };

declare module "fastify" {
  interface FastifyRequest {
    /** Time that the response was held as a long poll, milliseconds. */
    heldMs: number;
    /** The caller, as soon as the credentials are known to be valid; also when the call is then refused. */
    caller: Caller | null;
    /** The error code of the response. */
    errorCode: ErrorCode | null;
  }
}

/** Returns the caller's `x-request-id` if it is valid, else a new id. The response and every log line carry it. */
export function pickRequestId(request: Pick<IncomingMessage, "headers">): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : newRequestId();
}

/** V8 keeps the text of randomUUID as a tree of its thirteen parts, in every held request; through a buffer it is one string. */
const newRequestId = () => Buffer.from(randomUUID(), "latin1").toString("latin1");

/**
 * Counts and logs every request when it ends, also when the client has disconnected. The line of a successful request has
 * the level debug, because the metrics count it. Log lines and labels hold neither headers nor bodies nor raw URLs. A
 * request of test mode with a key is added to the log that its account can read; an app id is public, so its requests are
 * not, or any caller could fill the log.
 */
export function observeRequests(app: FastifyInstance, deps: ObserveDeps): void {
  app.decorateRequest("heldMs", 0);
  app.decorateRequest("caller", null);
  app.decorateRequest("errorCode", null);
  app.addHook("onRequest", async (request, reply) => {
    const began = performance.now();
    reply.header("x-request-id", request.id);
    reply.raw.on("close", () => record(deps, request, reply, performance.now() - began));
  });
}

/** Returns what a long poll knows of its request. */
export const toHold = (request: FastifyRequest, reply: FastifyReply): Hold => ({
  onGone: (leave) => {
    // The client may have disconnected while the request was authenticated.
    if (reply.raw.closed) leave();
    else reply.raw.on("close", leave);
  },
  held: (ms) => {
    request.heldMs = ms;
  },
});

/** Returns the id of the payment that a request's path names. */
export function paymentOf({ params }: FastifyRequest): string | undefined {
  const id: unknown = typeof params === "object" && params !== null && "id" in params ? params.id : undefined;
  return typeof id === "string" && /^pay_[0-9a-f]{32}$/.test(id) ? id : undefined;
}

function record({ metrics, requestLog }: ObserveDeps, request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const { method } = request;
  const route = request.routeOptions.url ?? "unknown";
  const answered = reply.raw.writableFinished;
  const status = answered ? String(reply.raw.statusCode) : "client_gone";
  metrics.httpRequests.inc({ route, method, status });
  if (answered) metrics.httpSeconds.observe({ route, method }, Math.max(0, ms - request.heldMs) / 1000);
  const { caller } = request;
  const times = { ms: Math.round(ms), heldMs: Math.round(request.heldMs) };
  const isDone = answered && reply.raw.statusCode < 400;
  const of = { payment: paymentOf(request), account: caller?.accountId, mode: caller?.mode };
  // A connection closes outside of the request's context, which would add the id.
  request.log[isDone ? "debug" : "info"](
    { method, route, status, ...times, ...of, requestId: request.id },
    "request completed",
  );
  if (caller?.mode !== "test" || caller.keyId === null) return;
  const [path = ""] = request.url.split("?", 1);
  const result = { status: answered ? reply.raw.statusCode : null, errorCode: request.errorCode };
  requestLog.add(caller.accountId, { method, route, path, ...result, requestId: request.id, durationMs: times.ms });
}
