import { type Command, InvalidArgumentError } from "commander";
import type { Event, PaymentClient } from "../../client/index.ts";
import { CliError } from "../cli-error.ts";
import { connect } from "../connection.ts";
import { describeEvent } from "../describe-event.ts";
import { formatTable } from "../format-table.ts";
import { forwardEvent } from "../forward-event.ts";
import { parseCount } from "../parse-count.ts";
import { printResult, readOptions } from "../print-result.ts";
import { printJson, printNote, type Terminal } from "../terminal.ts";
import { parseEventTypes } from "../trigger/scenarios.ts";
import { formatLine, readReceiverUrl } from "./listen.ts";

/** Most events of one page. */
const MOST = 200;

/** Adds `pay events`. */
export function addEventCommands(program: Command, terminal: Terminal): void {
  const events = program.command("events").description("read the account's events, or send one again");
  events
    .command("list")
    .description("list the latest events, the newest last")
    .option("--limit <count>", `how many, at most ${MOST}`, parseLimit, 20)
    .option("--cursor <cursor>", "the events after those of an earlier list")
    .option("--print-cursor", "print the cursor that continues after these events, to the standard error output")
    .option(
      "--events <types>",
      `only events of these types, separated by commas; without a cursor, among the latest ${MOST}`,
    )
    .addHelpText(
      "after",
      "\nExamples:\n  $ pay events list\n  $ pay events list --events payment.failed --limit 5 --json\n  $ pay events list --cursor WzEyLCJldnRfNWYz… --print-cursor",
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
  const options = readOptions<{ limit: number; cursor?: string; printCursor?: true; events?: string }>(command);
  const types = options.events === undefined ? undefined : new Set<string>(parseEventTypes(options.events));
  const { client } = await connect(terminal, options);
  const isWanted = ({ type }: Event) => !types || types.has(type);
  const { found, cursor } = await (options.cursor === undefined
    ? readLatest(client, { limit: options.limit, ofPage: types ? MOST : options.limit, isWanted })
    : readAfter(client, { cursor: options.cursor, limit: options.limit, isWanted }));
  printResult(terminal, options, found, formatTable(found.map(describeEvent)));
  if (options.printCursor && cursor !== null) printNote(terminal, cursor);
}

type Wanted = { limit: number; isWanted: (event: Event) => boolean };
/** Events, and the cursor after the last one that was read. */
type Found = { found: Event[]; cursor: string | null };

/** Returns the last wanted events of the latest `ofPage`, in one request. */
async function readLatest(client: PaymentClient, args: Wanted & { ofPage: number }): Promise<Found> {
  for await (const page of client.events.list({ start: "latest", limit: args.ofPage }).pages())
    return { found: page.data.filter(args.isWanted).slice(-args.limit), cursor: page.nextCursor };
  return { found: [], cursor: null };
}

/** Returns wanted events after a cursor, page by page, until there are enough. */
async function readAfter(client: PaymentClient, args: Wanted & { cursor: string }): Promise<Found> {
  const found: Event[] = [];
  let cursor: string | null = args.cursor;
  for await (const page of client.events.list({ cursor, limit: args.limit }).pages()) {
    found.push(...page.data.filter(args.isWanted));
    cursor = page.nextCursor;
    if (found.length >= args.limit) break;
  }
  return { found, cursor };
}

/** Reads the number of events of a list. Throws an error of Commander for anything else. */
function parseLimit(text: string): number {
  const count = parseCount(text);
  if (count > MOST) throw new InvalidArgumentError(`Expected at most ${MOST}.`);
  return count;
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
