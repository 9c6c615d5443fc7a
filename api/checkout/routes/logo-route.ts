import type { FastifyInstance } from "fastify";
import { findLogo } from "../../../payments/merchants/logos.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { sendRefusal } from "../../http/http-errors.ts";
import { addressLimitKey } from "../../http/rate-limits.ts";

/**
 * Serves GET /logos/{id}, the service's copies of merchants' logos, for buyers' pages and wallets. Requires no key. The id
 * is the hash of the content, so a copy never changes.
 */
export function serveLogos(app: FastifyInstance, deps: Pick<ApiDeps, "db" | "limits">): void {
  app.get<{ Params: { id: string } }>("/logos/:id", async (request, reply) => {
    const refusal = await deps.limits.address(addressLimitKey(request.ip), reply);
    if (refusal) return sendRefusal(reply, refusal);
    const { id } = request.params;
    const isId = /^[0-9a-f]{64}$/.test(id);
    // A client that has the copy needs no read: its content never changes.
    const isKnown = isId && request.headers["if-none-match"] === `"${id}"`;
    const logo = isId && !isKnown ? await findLogo(deps, id) : undefined;
    if (!logo && !isKnown) return sendRefusal(reply, { code: "invalid_params", message: "there is no such logo" }, 404);
    reply.headers({
      "cache-control": "public, max-age=31536000, immutable",
      "access-control-allow-origin": "*",
      "cross-origin-resource-policy": "cross-origin",
      etag: `"${id}"`,
    });
    return logo ? reply.type(logo.contentType).send(logo.bytes) : reply.code(304).send();
  });
}
