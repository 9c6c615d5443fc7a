import type { FastifyInstance } from "fastify";

/**
 * Accepts an empty JSON body as no body, because many clients send a content type with every request. The schema
 * decides whether a body is required.
 */
export function acceptEmptyJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) => {
    if (body === "") done(null, undefined);
    else parse(request, String(body), done);
  });
}
