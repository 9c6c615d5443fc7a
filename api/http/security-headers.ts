import type { FastifyInstance } from "fastify";

/** Security headers of every response. */
export const securityHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Sets the security headers on every response. A route that does not serve JSON overrides them. */
export function setSecurityHeaders(app: FastifyInstance, publicUrl: string): void {
  const headers = {
    ...securityHeaders,
    // Two years, as browsers' preload lists require; only where callers reach the service by TLS.
    ...(publicUrl.startsWith("https:") ? { "strict-transport-security": "max-age=63072000" } : {}),
  };
  app.addHook("onRequest", async (_request, reply) => {
    reply.headers(headers);
  });
}
