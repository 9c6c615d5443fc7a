import type { FastifyInstance } from "fastify";
import { checkReadiness, type Readiness, type ReadinessDeps } from "../../runtime/probes.ts";

/** How long a result is repeated, milliseconds. Anyone can ask here, and a check is a statement. */
const REPEAT_MS = 500;

/**
 * Serves GET /livez and GET /readyz on the api's port, for load balancers that cannot reach the port of the metrics. Neither
 * requires a key, and no rate limit counts them.
 */
export function serveProbes(app: FastifyInstance, { readiness }: { readiness: ReadinessDeps }): void {
  const check = repeatBriefly(() => checkReadiness(readiness));
  app.get("/livez", async (_request, reply) =>
    reply.header("cache-control", "no-store").type("text/plain; charset=utf-8").send("ok\n"),
  );
  app.get("/readyz", async (_request, reply) => {
    const state = await check();
    return reply
      .code(state.ok ? 200 : 503)
      .header("cache-control", "no-store")
      .send(state);
  });
}

/** Returns a check whose callers share one result for a short time. */
function repeatBriefly(check: () => Promise<Readiness>): () => Promise<Readiness> {
  let last: { result: Promise<Readiness>; startedAt: number } | undefined;
  return () => {
    const now = performance.now();
    if (!last || now - last.startedAt >= REPEAT_MS) last = { result: check(), startedAt: now };
    return last.result;
  };
}
