import type { Command } from "commander";
import type { Event } from "../../client/index.ts";
import { CliError } from "../cli-error.ts";
import { connect } from "../connection.ts";
import { describeEvent } from "../describe-event.ts";
import { formatTable } from "../format-table.ts";
import { forwardEvent } from "../forward-event.ts";
import { parseCount } from "../parse-count.ts";
import { printResult, readOptions } from "../print-result.ts";
import { printJson, type Terminal } from "../terminal.ts";
import { parseEventTypes } from "../trigger/scenarios.ts";
import { formatLine, readReceiverUrl } from "./listen.ts";

/** Adds `pay events`. */
export function addEventCommands(program: Command, terminal: Terminal): void {
  const events = program.command("events").description("read the account's events, or send one again");
  events
    .command("list")
    .description("list the latest events, the newest last")
    .option("--limit <count>", "how many", parseCount, 20)
    .option("--events <types>", "only events of these types, separated by commas")
    .addHelpText(
      "after",
      "\nThe service lists events from the oldest, so the command reads all of them before it prints the latest.\n\nExamples:\n  $ pay events list\n  $ pay events list --events payment.failed --limit 5 --json",
    )
    .action((_options: object, command: Command) => listEvents(terminal, command));
  events
    .command("get <event>")
    .description("print an event as a webhook endpoint gets it")
    .addHelpText("after", "\nExample:\n  $ pay events get evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0")
    .action(async (id: string, _options: object, command: Command) => {
      const { client } = await connect(terminal, readOptions(command));
      printJson(terminal, (await client.events.get(id)).event, 2);
    });
  events
    .command("resend <event>")
    .description("send an event to a server on this machine, as pay listen does")
    .requiredOption("--forward-to <url>", "where to send it")
    .addHelpText(
      "after",
      "\nExample:\n  $ pay events resend evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 --forward-to localhost:3000/hooks",
    )
    .action((id: string, _options: object, command: Command) => resend(terminal, command, id));
}

async function listEvents(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions<{ limit: number; events?: string }>(command);
  const types = options.events === undefined ? undefined : new Set<string>(parseEventTypes(options.events));
  const { client } = await connect(terminal, options);
  // The service lists the oldest first, so the latest are at the end of the last page.
  let latest: Event[] = [];
  for await (const event of client.events.list({ limit: 200 }))
    if (!types || types.has(event.type)) latest = [...latest, event].slice(-options.limit);
  printResult(terminal, options, latest, formatTable(latest.map(describeEvent)));
}

async function resend(terminal: Terminal, command: Command, id: string): Promise<void> {
  const options = readOptions<{ forwardTo: string }>(command);
  const url = readReceiverUrl(options.forwardTo);
  const { client, webhookSecret: secret } = await connect(terminal, options);
  const { event } = await client.events.get(id);
  const onUnreachable = () => {
    throw new CliError(`${url} is not reachable`);
  };
  const outcome = await forwardEvent(event, { url, secret, signal: terminal.signal, onUnreachable });
  printResult(terminal, options, { event, outcome }, [formatLine(event, outcome)]);
}
