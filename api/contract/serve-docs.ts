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

/** The contract as text, and the ETag of that text. */
type Contract = { text: string; etag: string };

/** Returns a function that generates the contract when it is first called: that takes longer than a start of the api should. */
function openContract(publicUrl: string): () => Contract {
  let contract: Contract | undefined;
  return () => {
    if (contract) return contract;
    const text = JSON.stringify(describeApi(operations, { publicUrl }));
    contract = { text, etag: `"${createHash("sha256").update(text).digest("base64url")}"` };
    return contract;
  };
}

/** Serves GET /openapi.json, the contract, and GET /docs, a page that shows and tries it. Neither requires a key. */
export function serveDocs(app: FastifyInstance, publicUrl: string): void {
  const readContract = openContract(publicUrl);
  app.get("/openapi.json", async (request, reply) => {
    const { text, etag } = readContract();
    reply.headers({ etag, "cache-control": "public, max-age=300", "access-control-allow-origin": "*" });
    if (request.headers["if-none-match"] === etag) return reply.code(304).send();
    return reply.type("application/json; charset=utf-8").send(text);
  });
  app.register(async (docs) => {
    docs.addHook("onSend", async (_request, reply) => {
      reply.header("content-security-policy", pagePolicy);
    });
    // The page requires this plugin, but not its document.
    await docs.register(swagger, { mode: "static", specification: { document: emptyDocument } });
    await docs.register(swaggerUi, {
      routePrefix: "/docs",
      transformSpecification: () => JSON.parse(readContract().text),
      transformSpecificationClone: false,
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

const emptyDocument = { openapi: "3.1.0", info: { title: "", version: "" }, paths: {} };
