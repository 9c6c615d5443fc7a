import type { Command } from "commander";
import type { Event } from "../../client/index.ts";
import { usageError } from "../cli-error.ts";
import { connect } from "../connection.ts";
import { describeError } from "../describe-error.ts";
import { describeEvent } from "../describe-event.ts";
import { type EventPayload, findLastCursor, followEvents } from "../follow-events.ts";
import { forwardEvent, type Outcome } from "../forward-event.ts";
import { readOptions } from "../print-result.ts";
import { print, printJson, printNote, type Terminal } from "../terminal.ts";
import { parseEventTypes } from "../trigger/scenarios.ts";
import { untilInterrupted } from "../until-interrupted.ts";

type ListenOptions = { forwardTo?: string; events?: string; thin?: boolean; fromBeginning?: boolean };

/** Adds `pay listen`. */
export function addListenCommand(program: Command, terminal: Terminal): void {
  program
    .command("listen")
    .description("forward the account's events to a server on this machine, signed like webhooks")
    .option("--forward-to <url>", "where to send them; without it, they are only printed")
    .option("--events <types>", "only events of these types, separated by commas")
    .option("--thin", "send ids only, as an endpoint with the payload thin gets them")
    .option("--from-beginning", "begin with the oldest event instead of the next one")
    .addHelpText("after", help)
    .action((_options: object, command: Command) => untilInterrupted(terminal, () => listen(terminal, command)));
}

const help = `
No public address is needed: pay reads GET /v1/events. Events are sent one after the other, in their order. While the
receiver is not reachable, the event waits and is sent again; any response counts, also an error. If the receiver ends the
connection without a response, the event is sent three more times. To send one again, use \`pay events resend\`. The key
needs the scope webhooks.

Examples:
  $ pay listen --forward-to localhost:3000/hooks
  $ pay listen --forward-to localhost:3000/hooks --events payment.succeeded,refund.succeeded
  $ pay listen --json`;

/** Returns the URL of a receiver; http is added where it is missing. Throws CliError for anything else. */
export function readReceiverUrl(text: string): string {
  const url = /^\w+:\/\//.test(text) ? text : `http://${text}`;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw usageError(`--forward-to: expected an address such as localhost:3000/hooks, and got ${text}`);
  return url;
}

async function listen(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions<ListenOptions>(command);
  const { forwardTo, json } = options;
  const url = forwardTo === undefined ? undefined : readReceiverUrl(forwardTo);
  const types = options.events === undefined ? undefined : new Set<string>(parseEventTypes(options.events));
  const payload: EventPayload = options.thin ? "thin" : "full";
  const { client, webhookSecret: secret, url: service, source } = await connect(terminal, options);
  const { signal } = terminal;
  const note = (line: string) => printNote(terminal, line);
  const cursor = options.fromBeginning ? undefined : await findLastCursor(client);
  note(`Listening to ${service} (${source})${url === undefined ? "" : `, forwarding to ${url}`}. Press Ctrl-C to end.`);
  if (url !== undefined) note(`Signing secret: ${secret}`);
  const onUnreachable = ({ id }: Event) => note(`${url} is not reachable; ${id} and later events wait for it`);
  const onError = (error: unknown) => note(`${describeError(error)}; trying again`);
  for await (const event of followEvents(client, { cursor, payload, signal, onError })) {
    if (types && !types.has(event.type)) continue;
    const outcome = url === undefined ? undefined : await forwardEvent(event, { url, secret, signal, onUnreachable });
    if (json) printJson(terminal, outcome ? { event, outcome } : { event });
    else print(terminal, formatLine(event, outcome));
  }
}

/** Returns the line of an event: when it happened, its type and subject, and what the receiver answered. */
export function formatLine(event: Event, outcome?: Outcome): string {
  const [time, type, subject, id] = describeEvent(event);
  const shown = `${time}  ${type.padEnd(18)}  ${subject}`;
  if (outcome === undefined) return `${shown}  ${id}`;
  const answer = "status" in outcome ? `${outcome.status}` : outcome.error;
  return `${shown}  → ${answer}  ${outcome.ms} ms`;
}
