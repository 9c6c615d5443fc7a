import type { IncomingHttpHeaders } from "node:http";

/** What an operator did to which job. One row each, written before it happens. */
export type OperatorAction = { who: string; action: string; queue: string | null; jobId: string | null };

type Asked = { method: string; route: string | undefined; params: Record<string, string | undefined> };

/**
 * The only writes that get through, by route. All of them run a job again or earlier, which is harmless: handlers are
 * safe to repeat. The board's other writes (add, edit, clean, obliterate, pause, …) would change what Postgres decides.
 */
const allowed: Record<string, { action: string; only?: (params: Asked["params"]) => boolean }> = {
  "/api/queues/:queueName/:jobId/retry": { action: "retry" },
  "/api/queues/:queueName/:jobId/promote": { action: "promote" },
  "/api/queues/:queueName/retry/:queueStatus": {
    action: "retry all failed",
    only: (params) => params.queueStatus === "failed",
  },
};

/** True for requests that cannot change anything. */
export function isRead(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** What a write would do, if it is one of those an operator may make. */
export function findAction(asked: Asked): Omit<OperatorAction, "who"> | undefined {
  const rule = asked.method === "PUT" ? allowed[asked.route ?? ""] : undefined;
  if (rule === undefined || rule.only?.(asked.params) === false) return undefined;
  return { action: rule.action, queue: asked.params.queueName ?? null, jobId: asked.params.jobId ?? null };
}

/**
 * True when another site's page asks: the browser sends the login along with it. Browsers tell with Sec-Fetch-Site;
 * over plain HTTP they leave it out and send only Origin. Without either it is no browser.
 */
export function isFromElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site !== "same-origin";
  const { origin, host } = headers;
  if (origin === undefined) return false;
  return !URL.canParse(origin) || new URL(origin).host !== host;
}
