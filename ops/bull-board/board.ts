import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import type { Queue } from "bullmq";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { AuditEntry } from "../../db/queries/audit-entries.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { Decrypt } from "../../runtime/encryption.ts";
import type { Log } from "../../runtime/log.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { serveConsole } from "../console/serve-console.ts";
import { findAction, isFromElsewhere, isRead } from "./allowed-writes.ts";
import { serveLogin } from "./login-routes.ts";
import { serveRunbooks } from "./serve-runbooks.ts";
import { operatorOf, requireSession } from "./session-guard.ts";

export type BoardDeps = Pick<PaymentDeps, "db" | "now"> & {
  decryptTotpSecret: Decrypt;
  queues: readonly Queue[];
  /** Shown as a badge that identifies the deployment. */
  deployment: string;
  /** Proxies that are trusted to name the caller's address and protocol: addresses and CIDR ranges. */
  trustedProxies: readonly string[];
  /** Writes to the audit log. The write to a queue is refused when this rejects. */
  record: (entry: AuditEntry) => Promise<unknown>;
  log: Log;
  metrics: Pick<Metrics, "refusedLogins">;
};

/**
 * Builds bull-board and the operator console behind the operators' login. Viewers can read, operators can also retry and
 * promote jobs, and request what the console offers; nothing else can be changed.
 */
export async function buildBoard(deps: BoardDeps): Promise<FastifyInstance> {
  const trustProxy = deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false;
  const app = fastify({ bodyLimit: 16 * 1024, trustProxy });
  app.addHook("onRequest", async (_request, reply) => {
    // With "no-referrer", browsers would send the login form with the origin "null".
    reply.headers({ "x-frame-options": "DENY", "referrer-policy": "same-origin", "x-content-type-options": "nosniff" });
  });
  serveLogin(app, deps);
  await app.register(async (guarded) => {
    guarded.addHook("onRequest", (request: GuardedRequest, reply) => guardRequest(deps, request, reply));
    await guarded.register(createBoardPlugin(deps));
    serveRunbooks(guarded);
  });
  await app.register(async (console) => {
    console.addHook("onRequest", (request, reply) => requireSession(deps, request, reply));
    serveConsole(console, deps);
  });
  return app;
}

function createBoardPlugin(deps: BoardDeps) {
  const serverAdapter = new FastifyAdapter();
  createBullBoard({
    queues: deps.queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter,
    options: {
      uiConfig: {
        boardTitle: "Payment queues",
        environment: { label: deps.deployment, color: "#8a3ffc", textColor: "#ffffff" },
        hideRedisDetails: true,
        hideDocsLink: true,
        // Every open tab would run CLIENT LIST for each queue at each poll.
        showWorkers: false,
        pollingInterval: { forceInterval: 5 },
        miscLinks: [
          { text: "Console", url: "/console" },
          { text: "Runbooks", url: "/runbooks" },
          { text: "Log out", url: "/logout" },
        ],
      },
    },
  });
  return serverAdapter.registerPlugin();
}

type GuardedRequest = FastifyRequest<{ Params: Record<string, string | undefined> }>;

async function guardRequest(deps: BoardDeps, request: GuardedRequest, reply: FastifyReply): Promise<unknown> {
  const refused = await requireSession(deps, request, reply);
  if (refused || isRead(request.method)) return refused;
  const operator = operatorOf(request);
  const route = request.routeOptions.url;
  const found = findAction({ method: request.method, route, params: request.params });
  if (found === undefined || isFromElsewhere(request.headers)) {
    deps.log.warn({ operator: operator.name, method: request.method, route }, "write refused");
    return reply.code(403).send({ error: "Only a retry or a promote from this page is allowed." });
  }
  if (!includesRole(operator.role, "operator")) {
    deps.log.warn({ operator: operator.name, ...found }, "write refused for the role");
    return reply.code(403).send({ error: "A viewer can change nothing." });
  }
  const actor = { kind: "operator", id: operator.name, address: request.ip } as const;
  try {
    await deps.record({ actor, ...found, before: null, after: null, at: deps.now() });
  } catch (err) {
    deps.log.error({ err }, "audit entry could not be written, write refused");
    return reply.code(503).send({ error: "The audit log cannot be written, so nothing was changed." });
  }
  deps.log.info({ operator: operator.name, ...found }, "operator action");
  return undefined;
}
