import type { FastifyInstance } from "fastify";
import { describeBriefly } from "../../runtime/redaction.ts";
import { serveActions } from "./action-routes.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { serveJobs } from "./job-routes.ts";
import { serveLists } from "./list-routes.ts";
import { servePaymentPages } from "./payment-routes.ts";
import { sendMessage } from "./send-message.ts";
import { isStopped } from "./stopped-statement.ts";

/**
 * Serves the console's pages. The caller lets only requests with a session through. Nothing here needs a script in the
 * browser, and everything that is shown is escaped: references, names and errors come from strangers.
 */
export function serveConsole(app: FastifyInstance, deps: ConsoleDeps): void {
  app.setErrorHandler((error, request, reply) => {
    deps.log.error({ err: error, route: request.routeOptions.url }, "console page failed");
    const stopped = isStopped(error);
    return sendMessage(request, reply, {
      status: stopped ? 503 : 500,
      title: stopped ? "This took too long" : "This page failed",
      text: stopped ? "The database stopped the query. Try again, or narrow it." : describeBriefly(error),
    });
  });
  servePaymentPages(app, deps);
  serveLists(app, deps);
  serveActions(app, deps);
  serveJobs(app, deps);
}
