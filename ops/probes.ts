import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";

export type Readiness = { ok: boolean; checks: Record<string, boolean> };

type ProbeDeps = {
  host: string;
  /** 0 takes a free port. */
  port: number;
  registry: Registry;
  /** Asks what this process cannot serve without. A throw or more than two seconds count as not ready. */
  ready: () => Promise<Readiness>;
  /** True once the process has begun to stop: it is alive and no longer ready. */
  isDraining?: () => boolean;
};

/** Below the two seconds that a readiness probe waits for its answer. */
const readyMs = 1_500;

/** Serves GET /metrics, /livez (the event loop turns, nothing else is asked) and /readyz (503 names what is missing). */
export async function startProbes(deps: ProbeDeps): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(deps, request.method ?? "", request.url ?? "", response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(deps.port, deps.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

async function answer(deps: ProbeDeps, method: string, url: string, response: ServerResponse): Promise<void> {
  const path = url.split("?", 1)[0];
  if (method !== "GET" && method !== "HEAD") return send(response, 405, "text/plain", "only GET\n");
  if (path === "/livez") return send(response, 200, "text/plain", "ok\n");
  if (path === "/metrics") return send(response, 200, deps.registry.contentType, await deps.registry.metrics());
  if (path !== "/readyz") return send(response, 404, "text/plain", "not here\n");
  const state = await readiness(deps);
  send(response, state.ok ? 200 : 503, "application/json", `${JSON.stringify(state)}\n`);
}

/** What `/readyz` answers; the api serves the same on its own port. */
export async function readiness(deps: Pick<ProbeDeps, "ready" | "isDraining">): Promise<Readiness> {
  if (deps.isDraining?.() === true) return { ok: false, checks: { accepting: false } };
  const late = Promise.withResolvers<Readiness>();
  const timer = setTimeout(() => late.resolve({ ok: false, checks: { answered_in_time: false } }), readyMs);
  try {
    return await Promise.race([deps.ready(), late.promise]);
  } catch {
    // Whoever wrote `ready` knows which check threw and logs it; here it is only "no".
    return { ok: false, checks: { answered: false } };
  } finally {
    clearTimeout(timer);
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
}
