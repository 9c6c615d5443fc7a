import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import type { Queue } from "bullmq";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import { createLoginThrottle, findUser, type Login, type LoginThrottle } from "./login.ts";
import { serveRunbooks } from "./runbooks.ts";
import { findAction, isFromElsewhere, isRead, type OperatorAction } from "./writes.ts";

export type BoardDeps = {
  queues: readonly Queue[];
  login: Login;
  /** Shown as a badge, so that nobody takes one deployment for another. */
  deployment: string;
  /** Stores the audit row. The write does not happen when this rejects. */
  recordAction: (action: OperatorAction) => Promise<unknown>;
  log: Log;
  metrics: Pick<Metrics, "refusedLogins">;
};

/** The operator's view of the queues, behind a login: failed jobs can be read and run again, nothing else is changed. */
export async function buildBoard(deps: BoardDeps): Promise<FastifyInstance> {
  const app = fastify({ bodyLimit: 16 * 1024 });
  const throttle = createLoginThrottle();
  await app.register(async (guarded) => {
    guarded.addHook("onRequest", (request, reply) => guardRequest({ ...deps, throttle }, request, reply));
    await guarded.register(createBoardPlugin(deps));
    serveRunbooks(guarded);
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
        // Each poll would run CLIENT LIST per queue, for every tab that is open.
        showWorkers: false,
        pollingInterval: { forceInterval: 5 },
        miscLinks: [{ text: "Runbooks", url: "/runbooks" }],
      },
    },
  });
  return serverAdapter.registerPlugin();
}

type GuardDeps = BoardDeps & { throttle: LoginThrottle };

async function guardRequest(deps: GuardDeps, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  reply.headers({ "x-frame-options": "DENY", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff" });
  const seconds = await deps.throttle.secondsToWait(request.ip);
  if (seconds > 0) {
    deps.metrics.refusedLogins.inc();
    return reply.code(429).header("retry-after", seconds).send("too many wrong logins\n");
  }
  const who = findUser(request.headers.authorization, deps.login);
  if (who === undefined) {
    if (request.headers.authorization !== undefined) {
      await deps.throttle.countWrong(request.ip);
      deps.metrics.refusedLogins.inc();
      deps.log.warn({ from: request.ip }, "refused a login");
    }
    return reply.code(401).header("www-authenticate", 'Basic realm="queues", charset="UTF-8"').send("login needed\n");
  }
  if (isRead(request.method)) return;
  const params = request.params as Record<string, string | undefined>;
  const action = findAction({ method: request.method, route: request.routeOptions.url, params });
  if (action === undefined || isFromElsewhere(request.headers)) {
    deps.log.warn({ who, method: request.method, route: request.routeOptions.url }, "refused a write");
    return reply.code(403).send({ error: "Only a retry or a promote, asked for on this page, is allowed here." });
  }
  try {
    await deps.recordAction({ who, ...action });
  } catch (err) {
    deps.log.error({ err }, "the audit row could not be written; the write is refused");
    return reply.code(503).send({ error: "The audit log cannot be written now, so nothing was done." });
  }
  deps.log.info({ who, ...action }, "operator action");
}
