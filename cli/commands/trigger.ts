import type { Command } from "commander";
import type { Event } from "../../client/index.ts";
import { CliError, usageError } from "../cli-error.ts";
import { connectMerchant } from "../connection.ts";
import { describeEvent, subjectOf } from "../describe-event.ts";
import { findLastCursor, followEvents } from "../follow-events.ts";
import { formatTable } from "../format-table.ts";
import { printResult, readOptions } from "../print-result.ts";
import { printNote, type Terminal } from "../terminal.ts";
import { findScenario, scenarios } from "../trigger/scenarios.ts";

/** How long the event may take, milliseconds: a worker writes some of them. */
const WAIT_MS = 20_000;

/** Adds `pay trigger`. */
export function addTriggerCommand(program: Command, terminal: Terminal): void {
  program
    .command("trigger [type]")
    .description("make an event happen in test mode")
    .option("--list", "list the types of events")
    .addHelpText("after", help)
    .action((type: string | undefined, _options: object, command: Command) => trigger(terminal, command, type));
}

const help = `
The command makes what the event is about: a payment, a refund, an endpoint. It ends when the event is there.
It deletes a merchant or an endpoint that it makes for the event. If Ctrl-C ends it before that, the merchant or the endpoint
is left: its id is printed.

Examples:
  $ pay trigger payment.succeeded
  $ pay trigger refund.succeeded --json
  $ pay trigger --list`;

async function trigger(terminal: Terminal, command: Command, type: string | undefined): Promise<void> {
  const options = readOptions<{ list?: boolean }>(command);
  if (options.list) return listTypes(terminal, options);
  if (type === undefined) throw usageError("name a type of event: `pay trigger --list` lists them");
  const scenario = findScenario(type);
  if (options.live) throw usageError("pay trigger works in test mode only");
  const { client, merchantId } = await connectMerchant(terminal, options);
  const cursor = await findLastCursor(client);
  const subject = await scenario({ client, merchantId, note: (line) => printNote(terminal, line) });
  const timeout = AbortSignal.timeout(WAIT_MS);
  const signal = AbortSignal.any([terminal.signal, timeout]);
  try {
    for await (const event of followEvents(client, { cursor, payload: "full", signal, onError: () => undefined }))
      if (event.type === type && subjectOf(event) === subject) return showEvent(terminal, options, event);
  } catch (error) {
    if (!timeout.aborted) throw error;
  }
  throw new CliError(`no ${type} about ${subject} within ${WAIT_MS / 1_000} s: does a worker run?`);
}

function showEvent(terminal: Terminal, options: { json?: boolean }, event: Event): void {
  printResult(terminal, options, event, formatTable([describeEvent(event)]));
}

function listTypes(terminal: Terminal, options: { json?: boolean }): void {
  const rows = Object.entries(scenarios).map(([type, scenario]) => ({
    type,
    impossible: typeof scenario === "function" ? null : scenario.impossible,
  }));
  const toRow = ({ type, impossible }: (typeof rows)[number]) => [
    type,
    impossible === null ? "" : `not in test mode: ${impossible}`,
  ];
  printResult(terminal, options, rows, formatTable(rows.map(toRow)));
}
