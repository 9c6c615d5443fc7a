import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { sendRefusal } from "./errors.ts";

/** What a caller is told about a request that could not even be read. */
const unreadable: Record<number, string> = {
  400: "the body is not JSON",
  413: "the body is larger than 64 KiB",
  414: "the path is too long",
  415: "expected the content type application/json",
};

const unreadablePath: Record<string, string> = {
  FST_ERR_BAD_URL: "the path is not percent-encoded right",
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: "the body is not as long as its content-length says",
};

/** The one error handler: what a client did wrong before a schema saw it, and what we did wrong (500, nothing told). */
export function answerFailure(error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const status = error.statusCode ?? 500;
  if (status >= 400 && status < 500)
    return sendRefusal(
      reply,
      {
        code: "invalid_params",
        message: unreadablePath[error.code] ?? unreadable[status] ?? "the request is not usable",
      },
      status,
    );
  request.log.error({ err: error, route: request.routeOptions.url }, "request failed");
  return sendRefusal(reply, {
    code: "internal_error",
    message: `something went wrong on our side; request ${request.id}`,
  });
}

/** The same for errors before routing (a path that is not percent-encoded right); the hooks have not run. */
export function answerEarlyFailure(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  void answerFailure(error, request, reply.header("x-request-id", request.id));
}

const brokenRequests: Record<string, { status: string; message: string }> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: "408 Request Timeout", message: "the request took too long to arrive" },
  HPE_HEADER_OVERFLOW: { status: "431 Request Header Fields Too Large", message: "the headers are too large" },
};

/** How long a client has to read the answer to bytes that are no HTTP request before its socket is destroyed, milliseconds. */
const LINGER_MS = 1_000;

/**
 * Answers bytes that are no HTTP request. There is no reply object, so the answer is written by hand. `end` closes our
 * half of the connection only, and a client that keeps its half open would hold the socket, so it is destroyed soon after.
 */
export function answerBrokenRequest(error: Error & { code: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, message } = brokenRequests[error.code] ?? {
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
