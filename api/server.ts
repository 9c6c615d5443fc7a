import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from "fastify";
import { serveCheckout } from "./checkout/serve.ts";
import { closeUnusedConnections } from "./connections.ts";
import { allowGatewayOrigins } from "./cors.ts";
import type { ApiDeps } from "./deps.ts";
import { serveDocs } from "./docs.ts";
import { acceptEmptyJson } from "./empty-json.ts";
import { answerBrokenRequest, answerEarlyFailure, answerFailure } from "./failures.ts";
import { serveLogos } from "./logos.ts";
import { observeRequests, pickRequestId } from "./observe.ts";
import { serveOperations } from "./routes.ts";
import { secureAnswers } from "./security.ts";

/** Largest body, bytes. */
const BODY_LIMIT = 64 * 1024;
/** Above the idle time of usual load balancers (60 s), so that it is they who close. */
const KEEP_ALIVE_MS = 72_000;
/** For a request to arrive whole; a hold comes after that and is not counted. */
const REQUEST_MS = 30_000;

/** The ingress: listens to nothing yet, opens nothing. Closing it answers all who wait first. */
export function buildServer(deps: ApiDeps): FastifyInstance {
  const app: FastifyInstance = fastify({
    loggerInstance: deps.log as FastifyBaseLogger,
    // observe.ts writes the one line of a request.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    genReqId: pickRequestId,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    bodyLimit: BODY_LIMIT,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    exposeHeadRoutes: false,
    // Wallets join base address and path by concatenation.
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, maxParamLength: 4_096 },
    frameworkErrors: answerEarlyFailure,
    clientErrorHandler: answerBrokenRequest,
  });
  app.removeContentTypeParser("text/plain");
  acceptEmptyJson(app);
  app.setErrorHandler(answerFailure);
  app.addHook("onRequest", (request, _reply, done) => deps.inContext({ requestId: request.id }, done));
  observeRequests(app, deps.metrics);
  secureAnswers(app, deps.publicUrl);
  app.addHook("onSend", async (_request, reply) => {
    if (deps.waiters.isDraining()) reply.header("connection", "close");
  });
  app.addHook("preClose", async () => deps.waiters.drain());
  closeUnusedConnections(app);
  allowGatewayOrigins(app);
  serveOperations(app, deps);
  serveLogos(app, deps);
  serveCheckout(app, deps);
  serveDocs(app, deps.publicUrl);
  return app;
}
