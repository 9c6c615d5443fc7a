import type { FastifyInstance } from "fastify";

/** Headers of every answer, wherever it is served. */
export const everyAnswer = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** Sets them. A route that serves something else than JSON sets its own over them. */
export function secureAnswers(app: FastifyInstance, publicUrl: string): void {
  const headers = {
    ...everyAnswer,
    // Two years, as browsers' preload lists want it; only where TLS is what callers see.
    ...(publicUrl.startsWith("https:") ? { "strict-transport-security": "max-age=63072000" } : {}),
  };
  app.addHook("onRequest", async (_request, reply) => {
    reply.headers(headers);
  });
}
