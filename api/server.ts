import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import type { ApiDeps } from "./api-deps.ts";
import { serveLogos } from "./checkout/routes/logo-route.ts";
import { serveCheckout } from "./checkout/routes/page-routes.ts";
import { serveDocs } from "./contract/serve-docs.ts";
import { allowGatewayOrigins } from "./http/cors.ts";
import { handleEarlyError, handleError, handleMalformedRequest } from "./http/error-handler.ts";
import { readJsonBodies } from "./http/json-bodies.ts";
import { observeRequests, pickRequestId } from "./http/observe-requests.ts";
import { serveProbes } from "./http/probe-routes.ts";
import { setSecurityHeaders } from "./http/security-headers.ts";
import { traceRequests } from "./http/trace-requests.ts";
import { closeUnusedConnections } from "./http/unused-connections.ts";
import { serveStatements } from "./merchant/serve-statements.ts";
import { serveOperations } from "./routes.ts";

/** Largest body, bytes. */
const BODY_LIMIT = 64 * 1024;
/** Above the idle timeout of common load balancers (60 s), so that the load balancer closes connections. */
const KEEP_ALIVE_MS = 72_000;
/**
 * How long a connection may stay open without a byte in either direction while a request is answered, milliseconds. Otherwise a
 * client that never reads its response holds it in memory for ever. Longer than the 25 s of a long poll and every time limit of
 * an operation; a kept connection between two requests has KEEP_ALIVE_MS.
 */
const SILENCE_MS = 72_000;
/** Timeout for receiving a whole request; a long poll begins after that. */
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Returns the HTTP server, which does not listen yet. Closing it answers all long polls first.
 * @param timeLimits.silenceMs how long a connection may be silent while a request is answered; a test shortens it
 * @param timeLimits.requestMs how long a request may take to arrive; a test shortens it
 */
export function buildServer(
  deps: ApiDeps,
  { silenceMs = SILENCE_MS, requestMs = REQUEST_TIMEOUT_MS }: { silenceMs?: number; requestMs?: number } = {},
): FastifyInstance {
  const app: FastifyInstance = fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    // observeRequests writes one line per request. All lines get the request's id from its context.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: (log) => log,
    genReqId: pickRequestId,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionTimeout: silenceMs,
    requestTimeout: requestMs,
    // While the limit of the headers is the longer one (60 s by default), Node ends a body by that one.
    http: { headersTimeout: requestMs, connectionsCheckingInterval: requestMs },
    // Apps that receive a payment link often send HEAD first.
    exposeHeadRoutes: true,
    // Wallets concatenate the base address and the path, which can double slashes.
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, maxParamLength: 4_096 },
    frameworkErrors: handleEarlyError,
    clientErrorHandler: handleMalformedRequest,
  });
  app.removeContentTypeParser("text/plain");
  readJsonBodies(app);
  app.setErrorHandler(handleError);
  app.addHook("onRequest", (request, _reply, done) => deps.inContext({ requestId: request.id }, done));
  traceRequests(app);
  observeRequests(app, deps);
  setSecurityHeaders(app, deps.publicUrl);
  app.addHook("onSend", async (_request, reply) => {
    if (deps.waiters.isDraining()) reply.header("connection", "close");
  });
  app.addHook("preClose", async () => deps.waiters.drain());
  closeUnusedConnections(app);
  allowGatewayOrigins(app);
  serveProbes(app, deps);
  serveOperations(app, deps);
  serveStatements(app, deps);
  serveLogos(app, deps);
  serveCheckout(app, deps);
  serveDocs(app, deps.publicUrl);
  return app;
}
