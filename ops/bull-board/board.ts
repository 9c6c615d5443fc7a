import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import type { Queue } from "bullmq";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { Log } from "../../runtime/log.ts";
import type { Metrics } from "../../runtime/metrics.ts";
import { findAction, isFromElsewhere, isRead, type OperatorAction } from "./allowed-writes.ts";
import { createLoginThrottle, findUser, type Login, type LoginThrottle } from "./board-login.ts";
import { serveRunbooks } from "./serve-runbooks.ts";

export type BoardDeps = {
  queues: readonly Queue[];
  login: Login;
  /** Shown as a badge that identifies the deployment. */
  deployment: string;
  /** Stores the audit row. The write is refused when this rejects. */
  recordAction: (action: OperatorAction) => Promise<unknown>;
  log: Log;
  metrics: Pick<Metrics, "refusedLogins">;
};

/** Builds bull-board behind a login. Operators can read jobs and retry or promote them, and change nothing else. */
export async function buildBoard(deps: BoardDeps): Promise<FastifyInstance> {
  const app = fastify({ bodyLimit: 16 * 1024 });
  const throttle = createLoginThrottle();
  await app.register(async (guarded) => {
    guarded.addHook("onRequest", (request: GuardedRequest, reply) =>
      guardRequest({ ...deps, throttle }, request, reply),
    );
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
        // Every open tab would run CLIENT LIST for each queue at each poll.
        showWorkers: false,
        pollingInterval: { forceInterval: 5 },
        miscLinks: [{ text: "Runbooks", url: "/runbooks" }],
      },
    },
  });
  return serverAdapter.registerPlugin();
}

type GuardDeps = BoardDeps & { throttle: LoginThrottle };
type GuardedRequest = FastifyRequest<{ Params: Record<string, string | undefined> }>;

async function guardRequest(deps: GuardDeps, request: GuardedRequest, reply: FastifyReply): Promise<unknown> {
  reply.headers({ "x-frame-options": "DENY", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff" });
  const seconds = await deps.throttle.secondsToWait(request.ip);
  if (seconds > 0) {
    deps.metrics.refusedLogins.inc();
    return reply.code(429).header("retry-after", seconds).send("too many wrong logins\n");
  }
  const user = findUser(request.headers.authorization, deps.login);
  if (user === undefined) {
    if (request.headers.authorization !== undefined) {
      await deps.throttle.countWrong(request.ip);
      deps.metrics.refusedLogins.inc();
      deps.log.warn({ address: request.ip }, "login refused");
    }
    return reply.code(401).header("www-authenticate", 'Basic realm="queues", charset="UTF-8"').send("login needed\n");
  }
  if (isRead(request.method)) return undefined;
  const action = findAction({ method: request.method, route: request.routeOptions.url, params: request.params });
  if (action === undefined || isFromElsewhere(request.headers)) {
    deps.log.warn({ operator: user, method: request.method, route: request.routeOptions.url }, "write refused");
    return reply.code(403).send({ error: "Only a retry or a promote from this page is allowed." });
  }
  try {
    await deps.recordAction({ actor: user, ...action });
  } catch (err) {
    deps.log.error({ err }, "audit row could not be written, write refused");
    return reply.code(503).send({ error: "The audit log cannot be written, so nothing was changed." });
  }
  deps.log.info({ operator: user, ...action }, "operator action");
  return undefined;
}
