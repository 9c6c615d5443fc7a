import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { ApiDeps } from "../deps.ts";
import { sendRefusal } from "../errors.ts";
import { addressGroup } from "../limits.ts";

/** Of a report what says where to look; browsers send more, and anybody can send anything. */
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

/** Reports told at most, of one request. */
const MOST = 5;

/**
 * POST /csp-reports: what a browser kept a page of ours from doing. It becomes a log line: somebody's extension, or
 * somebody in the middle of something.
 */
export function serveReports(app: FastifyInstance, deps: Pick<ApiDeps, "limits">): void {
  app.register(async (room) => {
    room.addContentTypeParser("application/reports+json", { parseAs: "string" }, (_request, text, done) => {
      try {
        done(null, JSON.parse(String(text)));
      } catch {
        done(null, undefined);
      }
    });
    room.post("/csp-reports", async (request, reply) => {
      const busy = await deps.limits.address(addressGroup(request.ip), reply);
      if (busy) return sendRefusal(reply, busy);
      const told = reports.safeParse(request.body);
      if (!told.success) return sendRefusal(reply, { code: "invalid_params", message: "expected reports" });
      for (const { type, body } of told.data.slice(0, MOST)) {
        const { effectiveDirective: directive, blockedURL = "" } = body;
        request.log.warn(
          { type, directive, blocked: URL.parse(blockedURL)?.host ?? "inline" },
          "a page was kept from something",
        );
      }
      return reply.code(204).send();
    });
  });
}
