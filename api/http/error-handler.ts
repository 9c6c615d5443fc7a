import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { findChainOutage, isTransient } from "../../payments/is-transient.ts";
import { sendRefusal } from "./http-errors.ts";
import type { BodyErrorCode } from "./json-bodies.ts";

/** Messages for requests that could not be read, by HTTP status. */
const messageByStatus: Record<number, string> = {
  400: "the body is not JSON",
  413: "the body is larger than 64 KiB",
  414: "the path is too long",
  415: "expected the content type application/json",
};

const bodyMessages: Record<BodyErrorCode, string> = {
  BODY_ENCODED: "expected a body without a content-encoding",
  BODY_CHARSET: "expected the charset utf-8",
  BODY_NOT_UTF8: "the body is not UTF-8",
  BODY_FORBIDDEN_NAME: "the body has a member named __proto__, or a constructor with a prototype",
};

/** Messages for requests that could not be read, by error code of fastify or of a body. */
const messageByCode: Record<string, string> = {
  ...bodyMessages,
  FST_ERR_BAD_URL: "the path is not percent-encoded correctly",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "the length of the body is not its content-length",
};

/** When clients should repeat a request that met a transient error, seconds. */
const RETRY_AFTER_SECONDS = 1;

/** When clients should repeat a request for which no endpoint of a chain answered, milliseconds. */
const CHAIN_RETRY_AFTER_MS = 5_000;

/**
 * Handles every thrown error: a request that could not be read (4xx), one that needs a chain that cannot be read (503
 * `chain_unavailable`) or that met another transient error (503), both with Retry-After, and an internal error (500, without details).
 * Whether a request that met a transient error has changed anything is unknown, so clients repeat it with its Idempotency-Key.
 */
export function handleError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500)
    return sendRefusal(
      reply,
      {
        code: "invalid_params",
        message: messageByCode[error.code] ?? messageByStatus[status] ?? "the request is not usable",
      },
      status,
    );
  const outage = findChainOutage(error);
  if (outage) {
    const retryAfterSeconds = Math.ceil((outage.waitMs ?? CHAIN_RETRY_AFTER_MS) / 1_000);
    request.log.warn({ err: error, route: request.routeOptions.url }, "request refused: a chain cannot be read");
    const message = `the chain cannot be read at the moment; retry in ${retryAfterSeconds} s`;
    return sendRefusal(reply, { code: "chain_unavailable", message, retryAfterSeconds }, 503);
  }
  if (isTransient(error)) {
    request.log.warn({ err: error, route: request.routeOptions.url }, "request met a transient error");
    const message = `the service is unavailable for a moment; repeat the request, with the same Idempotency-Key if it has one; request ${request.id}`;
    return sendRefusal(reply, { code: "internal_error", message, retryAfterSeconds: RETRY_AFTER_SECONDS }, 503);
  }
  request.log.error({ err: error, route: request.routeOptions.url }, "request failed");
  return sendRefusal(reply, {
    code: "internal_error",
    message: `something went wrong on our side; request ${request.id}`,
  });
}

/** Handles errors before routing, such as a path that is not percent-encoded correctly. No hook has run yet. */
export function handleEarlyError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  void handleError(error, request, reply.header("x-request-id", request.id));
}

const malformedRequests: Record<string, { status: string; message: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: "408 Request Timeout", message: "the request took too long to arrive" },
  HPE_HEADER_OVERFLOW: { status: "431 Request Header Fields Too Large", message: "the headers are too large" },
};

/** Time that a client has to read the response to a malformed request before its socket is destroyed, milliseconds. */
const LINGER_MS = 1_000;

/**
 * Responds to bytes that are not an HTTP request. There is no reply object, so the response is written by hand. `end`
 * closes only the server's half of the connection, so the socket is destroyed soon after. Leaves a connection open that has not sent
 * anything: Node counts it as a request that takes too long, and a load balancer that opened it in advance may be about to use it.
 * `connectionTimeout` ends it.
 */
export function handleMalformedRequest(error: Error & { code: string }, socket: Socket): void {
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0) return;
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, message } = malformedRequests[error.code] ?? {
    status: "400 Bad Request",
    message: "not an HTTP request",
  };
  const body = JSON.stringify({ code: "invalid_params", message });
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const linger = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(linger));
}
