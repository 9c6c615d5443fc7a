import { z } from "zod";
import { done, refuse } from "../../payments/error-codes.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, text } from "../contract/request-schemas.ts";
import { instant } from "../contract/response-schemas.ts";
import { KEEP_MS, type LogEntry, MOST_REQUESTS } from "../http/request-log.ts";

const HOURS = KEEP_MS / 3_600_000;

const entryId = z
  .string()
  .regex(/^[1-9]\d{0,14}-\d{1,15}$/, "expected the id of an entry")
  .meta({ example: "1772366400000-0" });

const requestLogEntry = z
  .object({
    id: entryId,
    createdAt: instant.meta({ description: "When the request ended." }),
    method: z.string().meta({ example: "POST" }),
    path: z
      .string()
      .meta({ description: "The path without its query, 200 characters at most.", example: "/v1/payments" }),
    status: z.int().nullable().meta({ description: "Null: the client has disconnected.", example: 400 }),
    errorCode: z.string().nullable().meta({ example: "params_validation" }),
    requestId: z.string().meta({ example: "3f0c8a52-7d1e-4b6a-9c25-8e4d1f7a6b30" }),
    durationMs: z.int().min(0).meta({ example: 12 }),
  })
  .meta({ id: "RequestLogEntry", description: "A request of the account in test mode, without headers and bodies." });

const status = z
  .string("expected one status")
  .regex(/^[1-5](?:xx|\d\d)$/i, "expected a status such as 404, or a class such as 4xx")
  .transform((given) => given.toLowerCase());

/** Returns true for an entry that a caller asks for. */
function matches(
  { status: own, path: ownPath }: LogEntry,
  asked: { status?: string | undefined; path?: string | undefined },
) {
  const { status: wanted, path = "" } = asked;
  const isStatus = wanted === undefined || (own !== null && `${own}`.startsWith(wanted.replace("xx", "")));
  return isStatus && ownPath.includes(path);
}

/** GET /v1/request-logs: an addition to the specification. */
const list = defineOperation({
  method: "GET",
  path: "/v1/request-logs",
  name: "listRequestLogs",
  summary: `Lists the account's latest requests in test mode, the newest first: up to ${MOST_REQUESTS}, of the last ${HOURS} hours. Requests with an app id and successful polling are left out. Test keys only. Best effort: entries are lost while Redis is down.`,
  access: "account",
  scope: "payments:read",
  wholeAccount: true,
  success: 200,
  query: listQuery({ maxLimit: 200, defaultLimit: 50 }).extend({
    cursor: entryId.optional(),
    after: entryId.meta({ description: "Only entries after the one with this id." }).optional(),
    status: status
      .meta({ description: "Only requests with this HTTP status, or of this class, such as 4xx." })
      .optional(),
    path: text(200).meta({ description: "Only requests whose path contains this text." }).optional(),
  }),
  response: z.object({ data: z.array(requestLogEntry), nextCursor: z.string().nullable() }),
  refusals: ["not_sandbox_api_key"],
  async handle(deps, { caller, query }) {
    const { accountId, mode } = caller;
    if (mode !== "test") return refuse("not_sandbox_api_key", "requests are logged in test mode only");
    const { cursor, limit, after } = query;
    const kept = await deps.requestLog.list(accountId, { after, before: cursor });
    const found = kept.filter((entry) => matches(entry, query));
    const page = found.slice(0, limit);
    const nextCursor = found.length > limit ? (page.at(-1)?.id ?? null) : null;
    return done({ data: page.map(({ at, ...entry }) => ({ ...entry, createdAt: at.toISOString() })), nextCursor });
  },
});

/** Operations on the log of requests. */
export const requestLogOperations = [list];
