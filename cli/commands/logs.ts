import { setTimeout as pause } from "node:timers/promises";
import type { Command } from "commander";
import { isTransient } from "../../client/http/retries.ts";
import {
  type ListRequestLogsQuery,
  type PaymentClient,
  PaymentServiceError,
  type RequestLogEntry,
} from "../../client/index.ts";
import { connect } from "../connection.ts";
import { describeError } from "../describe-error.ts";
import { formatTime } from "../format-table.ts";
import { parseCount } from "../parse-count.ts";
import { printResult, readOptions } from "../print-result.ts";
import { print, printJson, printNote, type Terminal } from "../terminal.ts";
import { untilInterrupted } from "../until-interrupted.ts";

const POLL_MS = 1_000;
const PAGE = 200;

type LogsOptions = { follow?: boolean; status?: string; path?: string; limit: number };

/** Adds `pay logs`. */
export function addLogsCommand(program: Command, terminal: Terminal): void {
  program
    .command("logs")
    .description("show the account's latest API requests in test mode, the newest last")
    .option("-f, --follow", "show later ones too, until Ctrl-C")
    .option("--status <status>", "only this HTTP status, or a class such as 4xx")
    .option("--path <text>", "only paths that contain this text")
    .option("--limit <count>", "how many", parseCount, 20)
    .addHelpText("after", help)
    .action((_options: object, command: Command) => untilInterrupted(terminal, () => showLogs(terminal, command)));
}

const help = `
Headers, queries and bodies are never logged. The service shows the latest 500 requests with a key, of the last 24 hours.

Examples:
  $ pay logs --status 4xx
  $ pay logs --follow --path /v1/payments
  $ pay logs --limit 100 --json`;

async function showLogs(terminal: Terminal, command: Command): Promise<void> {
  const { follow, status, path, limit, ...options } = readOptions<LogsOptions>(command);
  const { client } = await connect(terminal, options);
  const filter = { ...(status === undefined ? {} : { status }), ...(path === undefined ? {} : { path }) };
  const list = (query: ListRequestLogsQuery, count: number) => readRequests(client, { ...filter, ...query }, count);
  // The service lists the newest first.
  const latest = (await list({}, limit)).toReversed();
  if (!follow) return printResult(terminal, options, latest, latest.map(formatRequest));
  const show = (requests: readonly RequestLogEntry[]) => {
    for (const one of requests)
      if (options.json) printJson(terminal, one);
      else print(terminal, formatRequest(one));
  };
  show(latest);
  const { signal } = terminal;
  let after = latest.at(-1)?.id;
  let isFailing = false;
  while (!signal.aborted) {
    await pause(POLL_MS, undefined, { signal });
    try {
      const later = (await list(after === undefined ? {} : { after }, Number.POSITIVE_INFINITY)).toReversed();
      isFailing = false;
      show(later);
      after = later.at(-1)?.id ?? after;
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (!isFailing) printNote(terminal, `${describeError(error)}; trying again`);
      isFailing = true;
    }
  }
}

/**
 * Returns the latest requests, the newest first. The service refuses to go on after an entry that it no longer keeps: then
 * the read begins again.
 */
async function readRequests(
  client: PaymentClient,
  query: ListRequestLogsQuery,
  count: number,
): Promise<RequestLogEntry[]> {
  const found: RequestLogEntry[] = [];
  try {
    for await (const { data } of client.requestLogs.list({ ...query, limit: Math.min(count, PAGE) }).pages()) {
      found.push(...data);
      if (found.length >= count) break;
    }
    return found.slice(0, count);
  } catch (error) {
    const isCursorGone = error instanceof PaymentServiceError && error.code === "params_validation" && found.length > 0;
    if (!isCursorGone) throw error;
    return readRequests(client, query, count);
  }
}

/** Returns the line of a request: when, what, the status and the error code, the duration and the id. */
function formatRequest(request: RequestLogEntry): string {
  const { createdAt, method, path, status, errorCode, durationMs, requestId } = request;
  const result = [status ?? "client gone", errorCode].filter((one) => one !== null).join(" ");
  return `${formatTime(createdAt)}  ${method.padEnd(6)}  ${path}  ${result}  ${durationMs} ms  ${requestId}`;
}
