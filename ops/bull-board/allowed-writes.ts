import type { IncomingHttpHeaders } from "node:http";

/** An action of an operator on one job, or on all failed jobs of a queue, as the audit log names it. */
export type BoardAction = { action: string; subject: string };

type Write = { method: string; route: string | undefined; params: Record<string, string | undefined> };

/**
 * The allowed writes, by route. They only run a job again or earlier, which is safe because handlers can be repeated. The
 * other writes of bull-board (add, edit, clean, obliterate, pause, …) would change what Postgres decides.
 */
const allowed: Record<string, { action: string; only?: (params: Write["params"]) => boolean }> = {
  "/api/queues/:queueName/:jobId/retry": { action: "job.retried" },
  "/api/queues/:queueName/:jobId/promote": { action: "job.promoted" },
  "/api/queues/:queueName/retry/:queueStatus": {
    action: "failed_jobs.retried",
    only: (params) => params["queueStatus"] === "failed",
  },
};

/** Returns true for requests that cannot change anything. */
export function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Returns the action of a write, or undefined when it is not allowed. */
export function findAction(write: Write): BoardAction | undefined {
  const rule = write.method === "PUT" ? allowed[write.route ?? ""] : undefined;
  if (rule === undefined || rule.only?.(write.params) === false) return undefined;
  const { queueName = "", jobId } = write.params;
  return { action: rule.action, subject: jobId === undefined ? queueName : `${queueName}/${jobId}` };
}

/**
 * Returns true for a request from a page of another site, to which the browser adds the login. Browsers send Sec-Fetch-Site, and
 * over plain HTTP only Origin. A request without both does not come from a browser.
 */
export function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}
