import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { openStatement, type StatementLineView } from "../../payments/accounting/read-statements.ts";
import { csvHeader, toCsvLine } from "../../payments/accounting/statement-csv.ts";
import { done, type Result, refuse } from "../../payments/error-codes.ts";
import type { ApiDeps } from "../api-deps.ts";
import { merchantId } from "../contract/request-schemas.ts";
import { authenticate } from "../http/auth.ts";
import { sendRefusal } from "../http/http-errors.ts";
import { readLagging } from "../http/lagging-reads.ts";
import { parseInput } from "../http/parse-input.ts";
import { addressLimitKey } from "../http/rate-limits.ts";
import { endOf, isPeriod, PERIOD, period } from "./balance-operations.ts";

const query = z.strictObject(period).refine(isPeriod, PERIOD);
const params = z.object({ merchantId: merchantId.optional() });

/**
 * Serves statements as CSV, of one merchant or of the account. They are streamed: a statement of any length takes as much
 * memory as one part of it.
 */
export function serveStatements(app: FastifyInstance, deps: ApiDeps): void {
  for (const url of ["/v1/statement.csv", "/v1/merchants/:merchantId/statement.csv"]) {
    app.get(url, { exposeHeadRoute: false }, (request, reply) => serveStatement(deps, request, reply));
    app.head(url, (request, reply) => serveStatement(deps, request, reply));
  }
}

async function serveStatement(deps: ApiDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const limited = await deps.limits.address(addressLimitKey(request.ip), reply);
  if (limited) return sendRefusal(reply, limited);
  const permission = { access: "account", scope: "payments:read" } as const;
  const authenticated = await authenticate(deps, request, permission);
  if (!authenticated.ok) return sendRefusal(reply, authenticated);
  const { caller } = authenticated.value;
  const overused = caller.keyId === null ? undefined : await deps.limits.key(caller.keyId, reply);
  if (overused) return sendRefusal(reply, overused);
  const path = params.safeParse(request.params);
  if (!path.success) return sendRefusal(reply, refuse("merchant_not_found", "no such merchant"));
  const days = parseInput(query, request.query, { whole: "query", code: "params_validation" });
  if (!days.ok) return sendRefusal(reply, days);
  const { accountId, mode, onlyMerchants } = caller;
  const standIn = { db: deps.db, onUse: (error: unknown) => deps.replica?.abandon(error) };
  const args = { accountId, mode, onlyMerchants, ...path.data, ...days.value, standIn };
  const opened = await readLagging(deps, (on) => openStatement(on, args), { until: endOf(days.value) });
  if (!opened.ok) return sendRefusal(reply, opened);
  const parts = toParts(opened.value);
  const readPart: ReadPart = (waitMs) => deps.runList(accountId, async () => done(await parts.next()), waitMs);
  const first = request.method === "HEAD" ? undefined : await readPart();
  if (first?.ok === false) return sendRefusal(reply, first);
  const name = `statement-${days.value.from}-${days.value.until}.csv`;
  reply.header("content-disposition", `attachment; filename="${name}"`);
  reply.type("text/csv; charset=utf-8");
  // Fastify would read a stream to its end without sending it.
  return first ? reply.send(Readable.from(toCsv(first.value, readPart))) : reply.send();
}

/** Lines in one part of the response, about as many as are read at a time. */
const PART = 500;

/**
 * How long a further part of a response waits for other lists and statements, milliseconds. A refusal would cut a download
 * that has begun. After that time the download ends with an error, as most proxies would end a silent response.
 */
const PART_WAIT_MS = 60_000;

type ReadPart = (waitMs?: number) => Promise<Result<IteratorResult<string>>>;

/** Yields the parts of a response, and holds no connection to the database while the client takes one. */
async function* toCsv(first: IteratorResult<string>, readPart: ReadPart): AsyncGenerator<string> {
  for (let part = first; !part.done; ) {
    yield part.value;
    const next = await readPart(PART_WAIT_MS);
    if (!next.ok) throw new Error(`the statement waits too long for its next part: ${next.message}`);
    part = next.value;
  }
}

async function* toParts(lines: AsyncIterable<StatementLineView>): AsyncGenerator<string> {
  let part = [csvHeader];
  for await (const line of lines) {
    part.push(toCsvLine(line, { asset: line, paid: line.paid }));
    if (part.length < PART) continue;
    yield `${part.join("\r\n")}\r\n`;
    part = [];
  }
  if (part.length > 0) yield `${part.join("\r\n")}\r\n`;
}
