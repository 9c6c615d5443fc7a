import type { FastifyInstance } from "fastify";

const allowed = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers":
    "accept, content-type, api-version, api-key, app-id, client-id, authorization, sdk-name, sdk-version, sdk-platform, svc-version, wcp-version, x-request-id",
  /** Browsers keep it no longer than two hours. */
  "access-control-max-age": "7200",
};

/**
 * Wallets that are web pages call the gateway from any origin; they prove themselves by headers, never by cookies.
 * Merchant calls are for servers only and get no such headers.
 */
export function allowGatewayOrigins(app: FastifyInstance): void {
  app.addHook("onRequest", async (request, reply) => {
    if (!/^\/+v1\/+gateway\//.test(request.url)) return;
    reply.header("access-control-allow-origin", "*");
    reply.header(
      "access-control-expose-headers",
      "x-request-id, retry-after, ratelimit-limit, ratelimit-remaining, ratelimit-reset, svc-version",
    );
    if (request.method === "OPTIONS") return reply.headers(allowed).code(204).send();
  });
}
