import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { ApiDeps } from "../../api-deps.ts";
import { sendRefusal } from "../../http/http-errors.ts";
import { addressLimitKey } from "../../http/rate-limits.ts";

/** The members of a report that are logged. Browsers send more, and anyone can send anything. */
const reports = z.array(
  z.object({
    type: z.string().max(64),
    body: z.object({
      effectiveDirective: z.string().max(64).optional(),
      blockedURL: z.string().max(2_048).optional(),
      disposition: z.string().max(16).optional(),
    }),
  }),
);

/** Reports of one request that are logged at most. */
const MAX_LOGGED = 5;

/**
 * POST /csp-reports: logs what a browser blocked on a page. The cause is usually a browser extension; it can also be an
 * attempt to inject a script.
 */
export function serveReports(app: FastifyInstance, deps: Pick<ApiDeps, "limits">): void {
  app.register(async (scope) => {
    scope.addContentTypeParser("application/reports+json", { parseAs: "string" }, (_request, text, done) => {
      try {
        done(null, JSON.parse(String(text)));
      } catch {
        done(null, undefined);
      }
    });
    scope.post("/csp-reports", async (request, reply) => {
      const refusal = await deps.limits.address(addressLimitKey(request.ip), reply);
      if (refusal) return sendRefusal(reply, refusal);
      const parsed = reports.safeParse(request.body);
      if (!parsed.success) return sendRefusal(reply, { code: "invalid_params", message: "expected reports" });
      for (const { type, body } of parsed.data.slice(0, MAX_LOGGED)) {
        const { effectiveDirective: directive, blockedURL = "" } = body;
        request.log.warn(
          { type, directive, blocked: URL.parse(blockedURL)?.host ?? "inline" },
          "browser blocked a resource of a page",
        );
      }
      return reply.code(204).send();
    });
  });
}
