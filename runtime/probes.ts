import { createServer, type ServerResponse } from "node:http";
import type { Registry } from "prom-client";
import { TimeoutError, withTimeout } from "./timeout.ts";

/** `lanesWithoutGas` names lanes that hold too little native money, in minor units. They do not make a process unready. */
export type Readiness = {
  ok: boolean;
  checks: Record<string, boolean>;
  lanesWithoutGas?: { chain: string; lane: string; balance: string; needs: string }[];
};

/** How a process finds out whether it is ready. */
export type ReadinessDeps = {
  /** Checks everything that this process needs to serve. The process is not ready when this throws or is late. */
  ready: () => Promise<Readiness>;
  /** Returns true once the process has begun to stop: it is alive and no longer ready. */
  isDraining?: () => boolean;
};

type ProbeDeps = ReadinessDeps & {
  host: string;
  /** 0 takes a free port. */
  port: number;
  registry: Registry;
};

/** How long `ready` may take, milliseconds; less than the two seconds after which a readiness probe gives up. */
const readyMs = 1_500;

/** Serves GET /metrics, /livez (checks only that the event loop runs) and /readyz (a 503 names the failed check). */
export async function startProbes(deps: ProbeDeps): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(deps, request.method ?? "", request.url ?? "", response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(deps.port, deps.host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : deps.port,
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
  if (path !== "/readyz") return send(response, 404, "text/plain", "not found\n");
  const state = await checkReadiness(deps);
  send(response, state.ok ? 200 : 503, "application/json", `${JSON.stringify(state)}\n`);
}

/** Returns what `/readyz` answers; the api serves it on its own port too. Never rejects. */
export async function checkReadiness(deps: ReadinessDeps): Promise<Readiness> {
  if (deps.isDraining?.() === true) return { ok: false, checks: { accepting: false } };
  try {
    return await withTimeout(deps.ready(), readyMs, "the readiness check");
  } catch (error) {
    // `ready` logs its own failures.
    return { ok: false, checks: error instanceof TimeoutError ? { answered_in_time: false } : { answered: false } };
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store" }).end(body);
}
