import { createHash } from "node:crypto";
import swagger from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { operations } from "../routes.ts";
import { describeApi } from "./openapi.ts";

/** Content security policy of the documentation page: it exchanges data with this service only. */
const pagePolicy = [
  "default-src 'self'",
  "img-src 'self' data:",
  // Swagger UI writes style attributes.
  "style-src 'self' 'unsafe-inline'",
  "script-src 'self'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Lets the documentation page send a request with a test key only: a page is no place for a live one. It runs in the
 * browser, so it may use nothing from outside.
 */
export function refuseLiveKeys<R extends { headers?: Record<string, string> }>(request: R): R {
  const isLive = Object.values(request.headers ?? {}).some((value) => /^(Bearer +)?svc_(?!test_)/i.test(value));
  if (isLive) throw new Error("This page sends requests with test keys only (svc_test_…).");
  return request;
}

/** Serves GET /openapi.json, the contract, and GET /docs, a page that shows and tries it. Neither requires a key. */
export function serveDocs(app: FastifyInstance, publicUrl: string): void {
  const document = describeApi(operations, { publicUrl });
  const text = JSON.stringify(document);
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  app.get("/openapi.json", async (request, reply) => {
    reply.headers({ etag, "cache-control": "public, max-age=300", "access-control-allow-origin": "*" });
    if (request.headers["if-none-match"] === etag) return reply.code(304).send();
    return reply.type("application/json; charset=utf-8").send(text);
  });
  app.register(async (docs) => {
    docs.addHook("onSend", async (_request, reply) => {
      reply.header("content-security-policy", pagePolicy);
    });
    await docs.register(swagger, { mode: "static", specification: { document: JSON.parse(text) } });
    await docs.register(swaggerUi, {
      routePrefix: "/docs",
      uiConfig: {
        validatorUrl: null,
        deepLinking: true,
        tryItOutEnabled: true,
        requestInterceptor: refuseLiveKeys,
        // A request that the interceptor refuses has no changed form to show.
        showMutatedRequest: false,
      },
    });
  });
}
