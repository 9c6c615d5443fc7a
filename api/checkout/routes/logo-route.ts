import type { FastifyInstance } from "fastify";
import { findLogo } from "../../../payments/merchants/logos.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { sendRefusal } from "../../http/http-errors.ts";

/**
 * Serves GET /logos/{id}, the service's copies of merchants' logos, for buyers' pages and wallets. Requires no key. The id
 * is the hash of the content, so a copy never changes.
 */
export function serveLogos(app: FastifyInstance, deps: Pick<ApiDeps, "db">): void {
  app.get<{ Params: { id: string } }>("/logos/:id", async (request, reply) => {
    const { id } = request.params;
    const logo = /^[0-9a-f]{64}$/.test(id) ? await findLogo(deps, id) : undefined;
    if (!logo) return sendRefusal(reply, { code: "invalid_params", message: "there is no such logo" }, 404);
    reply.headers({
      "cache-control": "public, max-age=31536000, immutable",
      "access-control-allow-origin": "*",
      "cross-origin-resource-policy": "cross-origin",
      etag: `"${id}"`,
    });
    if (request.headers["if-none-match"] === `"${id}"`) return reply.code(304).send();
    return reply.type(logo.contentType).send(logo.bytes);
  });
}
