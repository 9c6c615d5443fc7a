import { z } from "zod";
import type { RedisClient } from "../../queues/redis-connections.ts";
import { scrubText } from "../../runtime/redaction.ts";

/** Requests that are kept for an account. With the longest paths and ids they take at most 400 KB of Redis' memory. */
export const MOST_REQUESTS = 500;

/** How long a request can be read. */
export const KEEP_MS = 24 * 60 * 60_000;

/** Characters of a path that are kept, and those of a part of it. Ids and public keys are shorter; payment links are not. */
const PATH_CHARACTERS = 200;
const PART_CHARACTERS = 80;

/** Characters of a request id that are kept. */
const ID_CHARACTERS = 64;

/**
 * Returns a path without what may be a secret, which is a key that a caller put there by mistake or a pairing link of a
 * wallet, and without what a terminal may take for a command.
 */
function cleanPath(path: string): string {
  const plain = path.replace(/[^!-~]/g, "?");
  const parts = plain.split("/").map((part) => (part.length > PART_CHARACTERS ? "…" : scrubText(part)));
  return parts.join("/").slice(0, PATH_CHARACTERS);
}

/** Methods and routes that programs call once a second. Only their errors are kept. */
const polled: ReadonlySet<string> = new Set([
  "GET /v1/events",
  "GET /v1/request-logs",
  "GET /v1/gateway/payment/:id/status",
  "GET /v1/payments/:id/status",
  "GET /v1/merchant/payment/:id/status",
]);

const LoggedRequest = z.object({
  method: z.string(),
  /** The path without its query. */
  path: z.string(),
  /** Null when the client has disconnected. */
  status: z.number().nullable(),
  errorCode: z.string().nullable(),
  requestId: z.string(),
  durationMs: z.number(),
});

/** The text of a request in Redis. */
const StoredRequest = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue("expected JSON");
      return z.NEVER;
    }
  })
  .pipe(LoggedRequest);

/** A request of an account in test mode, without headers, query and bodies. */
type LoggedRequest = z.infer<typeof LoggedRequest>;
/** A request with its place in the log, and when it ended. */
export type LogEntry = LoggedRequest & { id: string; at: Date };

/** The latest requests of each account in test mode, for people who develop against the api. */
export type RequestLog = {
  /** Adds a request. Never throws, and no caller waits: an entry is lost while Redis is down. */
  add(accountId: string, request: LoggedRequest & { route: string }): void;
  /**
   * Returns the kept requests of an account after an entry and before one, the newest first. An entry that is no longer
   * kept is older than the others. Throws while Redis is down.
   */
  list(accountId: string, options: { after?: string | undefined; before?: string | undefined }): Promise<LogEntry[]>;
};

/** One command adds an entry, removes those that are too many or too old, and renews the expiry of the whole stream. */
const addScript = `local id = redis.call("XADD", KEYS[1], "MAXLEN", ARGV[1], "*", "request", ARGV[2])
redis.call("XTRIM", KEYS[1], "MINID", string.format("%.0f", tonumber(id:match("^%d+")) - ARGV[3]))
return redis.call("PEXPIRE", KEYS[1], ARGV[3])`;

/** Opens the request log, which is a capped stream in Redis for each account. `redis` is a connection that fails fast. */
export function createRequestLog({
  redis,
  prefix,
  now,
}: {
  redis: RedisClient;
  prefix: string;
  now: () => Date;
}): RequestLog {
  const keyOf = (accountId: string) => `${prefix}:requests:${accountId}`;
  return {
    add(accountId, { route, ...request }) {
      const isError = request.status === null || request.status >= 400;
      if (!isError && polled.has(`${request.method} ${route}`)) return;
      const requestId = request.requestId.slice(0, ID_CHARACTERS);
      const text = JSON.stringify({ ...request, path: cleanPath(request.path), requestId });
      redis.eval(addScript, 1, keyOf(accountId), MOST_REQUESTS, text, KEEP_MS).catch(() => undefined);
    },
    async list(accountId, { after, before }) {
      const oldest = now().getTime() - KEEP_MS;
      const start = after !== undefined && Number.parseInt(after, 10) >= oldest ? `(${after}` : String(oldest);
      const rows = await redis.xrevrange(keyOf(accountId), before === undefined ? "+" : `(${before}`, start);
      return rows.flatMap(([id, [, text = ""]]) => {
        // Another version of the service may have written the entry.
        const request = StoredRequest.safeParse(text).data;
        return request ? { id, at: new Date(Number.parseInt(id, 10)), ...request } : [];
      });
    },
  };
}
