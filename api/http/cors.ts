import type { FastifyInstance } from "fastify";

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers":
    "accept, content-type, api-version, api-key, app-id, client-id, authorization, sdk-name, sdk-version, sdk-platform, svc-version, wcp-version, x-request-id",
  /** Browsers cache it for two hours at most. */
  "access-control-max-age": "7200",
};

/**
 * Lets web wallets call the gateway from any origin; they authenticate by headers, never by cookies. Merchant operations
 * are for servers only and get no CORS headers.
 */
export function allowGatewayOrigins(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    if (!/^\/+v1\/+gateway\//.test(request.url)) return;
    reply.header("access-control-allow-origin", "*");
    reply.header(
      "access-control-expose-headers",
      "x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, svc-version",
    );
    if (request.method === "OPTIONS") return reply.headers(preflightHeaders).code(204).send();
  });
}
