import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { FastifyAdapter } from "@bull-board/fastify";
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import type { ConsoleDeps } from "../console/console-deps.ts";
import { jobPath } from "../console/jobs-page.ts";
import { describeProblem, RETRY_AFTER_S, serveConsole } from "../console/serve-console.ts";
import { type LoginDeps, serveLogin } from "../operator-login/login-routes.ts";
import { operatorOf, requireSession } from "../operator-login/session-guard.ts";
import { serveRunbooks } from "./serve-runbooks.ts";

/** bull-board's page would load fonts from Google, which would learn who operates the service, and when. */
const boardPolicy = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

export type BoardDeps = ConsoleDeps &
  LoginDeps & {
    /** Shown as a badge that identifies the deployment. */
    deployment: string;
    /** Proxies that are trusted to name the caller's address and protocol: addresses and CIDR ranges. */
    trustedProxies: readonly string[];
  };

/**
 * Builds bull-board and the operator console behind the operators' login. The board only shows jobs. On the console, viewers
 * read, and operators also run failed jobs again and request actions.
 */
export async function buildBoard(deps: BoardDeps): Promise<FastifyInstance> {
  const trustProxy = deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false;
  const app = fastify({ bodyLimit: 16 * 1024, trustProxy });
  app.addHook("onRequest", async (_request, reply) => {
    // With "no-referrer", browsers would send the login form with the origin "null".
    reply.headers({ "x-frame-options": "DENY", "referrer-policy": "same-origin", "x-content-type-options": "nosniff" });
  });
  app.setErrorHandler((error, request, reply) => sendProblem(deps, error, request, reply));
  serveLogin(app, deps);
  await app.register(async (guarded) => {
    // bull-board's own error handler sends the message of an error and writes nothing to the log.
    guarded.addHook("onRequest", (request, reply) =>
      guardRequest(deps, request, reply).catch((error: unknown) => sendProblem(deps, error, request, reply)),
    );
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
    queues: deps.queues.map(
      (queue) =>
        new BullMQAdapter(queue, {
          // Hides the buttons whose requests would be refused.
          readOnlyMode: true,
          externalJobUrl: ({ id }) => ({
            displayText: "Payments, error, retry",
            href: jobPath(queue.name, String(id)),
          }),
        }),
    ),
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
          { text: "Failed jobs", url: "/console/jobs" },
          { text: "Runbooks", url: "/runbooks" },
          { text: "Log out", url: "/logout" },
        ],
      },
    },
  });
  return serverAdapter.registerPlugin();
}

/** Lets reads of a session through. The board only reads: the console has the forms that run jobs again. */
async function guardRequest(deps: BoardDeps, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  reply.header("content-security-policy", boardPolicy);
  const refused = await requireSession(deps, request, reply);
  if (refused || request.method === "GET" || request.method === "HEAD") return refused;
  const operator = operatorOf(request);
  deps.log.warn({ operator: operator.name, method: request.method, route: request.routeOptions.url }, "write refused");
  return reply.code(403).send({ error: "The board only shows jobs. Run failed jobs again on the console's page." });
}

/** Answers a request that has failed, to callers who may have no session: its error is only in the log. */
function sendProblem(deps: BoardDeps, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, title } = describeProblem(error);
  deps.log[status < 500 ? "info" : "error"]({ err: error, route: request.routeOptions.url }, "board request failed");
  if (status === 503) reply.header("retry-after", RETRY_AFTER_S);
  return reply.code(status).send({ error: `${title}.` });
}
