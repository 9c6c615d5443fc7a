import type { FastifyInstance } from "fastify";
import { describeBriefly } from "../../runtime/redaction.ts";
import { createTransientCheck } from "../../runtime/transient-errors.ts";
import { serveActions } from "./action-routes.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { serveJobs } from "./job-routes.ts";
import { serveLists } from "./list-routes.ts";
import { servePaymentPages } from "./payment-routes.ts";
import { sendMessage } from "./send-message.ts";
import { isStopped } from "./stopped-statement.ts";

/** Seconds after which a client may try again while a store cannot be reached. */
export const RETRY_AFTER_S = 5;

const isTransient = createTransientCheck(() => false);

/**
 * Serves the console's pages. The caller lets only requests with a session through. Nothing here needs a script in the
 * browser, and everything that is shown is escaped: references, names and errors come from strangers.
 */
export function serveConsole(app: FastifyInstance, deps: ConsoleDeps): void {
  app.setErrorHandler((error, request, reply) => {
    const { status, ...page } = describeProblem(error);
    deps.log[status < 500 ? "info" : "error"]({ err: error, route: request.routeOptions.url }, "console page failed");
    if (status === 503) reply.header("retry-after", RETRY_AFTER_S);
    return sendMessage(request, reply, { status, ...page });
  });
  servePaymentPages(app, deps);
  serveLists(app, deps);
  serveActions(app, deps);
  serveJobs(app, deps);
}

/** Returns the page of an error: a bad request, a store that cannot be reached now, or a bug. */
export function describeProblem(error: unknown): { status: number; title: string; text: string } {
  if (isStopped(error))
    return {
      status: 503,
      title: "This took too long",
      text: "The database stopped the query. Try again, or narrow it.",
    };
  if (isTransient(error))
    return {
      status: 503,
      title: "Not available",
      text: "The database or Redis cannot be reached. Try again in a moment.",
    };
  const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
  if (status >= 400 && status < 500)
    return { status, title: "This request is not valid", text: describeBriefly(error) };
  return { status: 500, title: "This page failed", text: describeBriefly(error) };
}
