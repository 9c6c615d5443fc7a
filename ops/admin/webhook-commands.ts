import type { Command } from "commander";
import { changeEndpoint, createEndpoint, deleteEndpoint } from "../../payments/webhooks/change-endpoints.ts";
import { rotateSecret } from "../../payments/webhooks/endpoint-secrets.ts";
import { findEndpoint, listEndpoints } from "../../payments/webhooks/endpoint-views.ts";
import { type EventType, isEventType } from "../../payments/webhooks/event-types.ts";
import { findDelivery, listDeliveries } from "../../payments/webhooks/list-deliveries.ts";
import { listEvents } from "../../payments/webhooks/list-events.ts";
import { type Replay, replayEvent, replayEvents, sendTestEvent } from "../../payments/webhooks/replay-events.ts";
import { requireAccount } from "./account-commands.ts";
import {
  type AddAction,
  type Context,
  oneOf,
  parseMode,
  TIMES,
  time,
  toJsonLine,
  UsageError,
  unwrap,
  wholeNumber,
} from "./command.ts";
import { requirePayment } from "./require-payment.ts";

const parseState = oneOf("pending", "delivered", "given_up");
const parsePayload = oneOf("full", "thin");
const parseStatus = oneOf("enabled", "disabled");

type Options = Record<string, string | undefined>;
const ownerOf = ({ account = "", mode }: Options) => ({ accountId: account, mode: parseMode(mode) });

/** Adds the commands for webhook endpoints, their deliveries and events. They run the functions of the API. */
export function addWebhookCommands(program: Command, addAction: AddAction): void {
  const webhooks = program.command("webhooks").description("webhook endpoints, their deliveries, and events");
  addEndpointCommands(webhooks, addAction);
  addDeliveryCommands(webhooks, addAction);
}

function addEndpointCommands(webhooks: Command, addAction: AddAction): void {
  const ofAccount = (name: string, what: string) =>
    webhooks
      .command(name)
      .description(what)
      .requiredOption("--account <id>", "the account of the endpoint")
      .requiredOption("--mode <mode>", "live or test", parseMode);
  const ofEndpoint = (name: string, what: string) => webhooks.command(`${name} <endpoint>`).description(what);
  addAction(
    withSettings(
      ofAccount("new", "register an endpoint; its secret is shown only once, and API keys cannot change it"),
    ).requiredOption("--url <url>", "its URL, over https"),
    async (context, _args, options) => {
      const deps = { ...context, encryptWebhookSecret: context.encryptTo("webhooks").encrypt };
      const args = { ...ownerOf(options), actor: await context.actor(), ...readSettings(options) };
      const created = unwrap(await createEndpoint(deps, { ...args, url: options["url"] ?? "" }));
      return { value: { id: created.endpoint.id, secret: created.secret } };
    },
  );
  addAction(ofAccount("list", "list the endpoints of an account"), async (context, _args, options) => {
    await requireAccount(context, options["account"] ?? "");
    return { value: await listEndpoints(context, ownerOf(options)) };
  });
  addAction(ofEndpoint("show", "show an endpoint without its secret"), async (context, [endpointId = ""]) => ({
    value: unwrap(await findEndpoint(context, { endpointId })),
  }));
  addAction(
    withSettings(ofEndpoint("change", "change an endpoint, or disable or enable it"))
      .option("--url <url>", "its new URL; pending events go there")
      .option("--status <status>", "enabled or disabled", parseStatus),
    async (context, [endpointId = ""], options) => {
      const { url, status } = options;
      const change = { url, ...readSettings(options), status: status ? parseStatus(status) : undefined };
      const args = { endpointId, actor: await context.actor(), ...change };
      return { value: unwrap(await changeEndpoint(context, args)) };
    },
  );
  addAction(
    ofEndpoint(
      "rotate",
      "create a new secret, which is shown only once; the old one signs for one more day; refused while it does",
    ).option("--now", "for a secret that has leaked: every old one stops signing at once"),
    async (context, [endpointId = ""], options) => {
      const deps = { ...context, encryptWebhookSecret: context.encryptTo("webhooks").encrypt };
      const now = options["now"] !== undefined;
      const args = { endpointId, actor: await context.actor(), now, keepsFormer: !now };
      return { value: unwrap(await rotateSecret(deps, args)) };
    },
  );
  addAction(ofEndpoint("delete", "delete an endpoint"), async (context, [endpointId = ""]) => ({
    value: unwrap(await deleteEndpoint(context, { endpointId, actor: await context.actor() })),
  }));
  addAction(ofEndpoint("test", "send a test event"), async (context, [endpointId = ""]) => ({
    value: unwrap(await sendTestEvent(context, { endpointId, actor: await context.actor() })),
  }));
}

const withSettings = (command: Command) =>
  command
    .option("--types <list>", "only events of these types, separated by commas; all: of every type")
    .option("--merchants <list>", "only events of these merchants, separated by commas; all: of every merchant")
    .option("--payload <kind>", "full, or thin: only the id of what the event is about", parsePayload);

function readSettings({ types, merchants, payload }: Options) {
  const read = (list: string) => (list === "all" ? null : list.split(","));
  return {
    eventTypes: types === undefined ? undefined : (read(types)?.map(toEventType) ?? null),
    merchantIds: merchants === undefined ? undefined : read(merchants),
    payload: payload === undefined ? undefined : parsePayload(payload),
  };
}

function toEventType(text: string): EventType {
  if (isEventType(text)) return text;
  throw new UsageError(`--types: there is no type ${text}`);
}

function addDeliveryCommands(webhooks: Command, addAction: AddAction): void {
  addAction(
    webhooks
      .command("deliveries <endpoint>")
      .description("list deliveries, newest first")
      .option("--payment <id>", "only of this payment")
      .option("--state <state>", "pending, delivered or given_up", parseState)
      .option("--limit <number>", "most deliveries to list", wholeNumber, "50"),
    async (context, [endpointId = ""], options) => {
      const { payment: paymentId, state, limit } = options;
      if (paymentId !== undefined) await requirePayment(context, paymentId);
      const query = { paymentId, state: state === undefined ? undefined : parseState(state), limit: Number(limit) };
      return { value: unwrap(await listDeliveries(context, { endpointId, ...query })).items };
    },
  );
  addAction(
    webhooks.command("delivery <endpoint> <event>").description("show a delivery with its requests and responses"),
    async (context, [endpointId = "", eventId = ""]) => ({
      value: unwrap(await findDelivery(context, { endpointId, eventId })),
    }),
  );
  addAction(
    webhooks
      .command("events")
      .description("list the events of an account, oldest first")
      .requiredOption("--account <id>", "the account")
      .requiredOption("--mode <mode>", "live or test", parseMode)
      .option("--cursor <cursor>", "continue after this cursor")
      .option("--limit <number>", "most events to list", wholeNumber, "50"),
    async (context, _args, options) => {
      await requireAccount(context, options["account"] ?? "");
      const query = { cursor: options["cursor"], limit: Number(options["limit"]), payload: "full" as const };
      const page = unwrap(await listEvents(context, { ...ownerOf(options), ...query }));
      return { value: page, lines: [...page.items.map(toJsonLine), `cursor ${page.nextCursor}`] };
    },
  );
  addAction(
    webhooks
      .command("replay <endpoint>")
      .description("send events again under their own ids: one, all of a period, or all that were given up")
      .option("--event <id>", "this event")
      .option("--since <time>", `events from this time on (${TIMES})`, time)
      .option("--until <time>", `events up to this time (default: now; ${TIMES})`, time)
      .option("--given-up", "events that were given up"),
    async (context, [endpointId = ""], options) => {
      const { event: eventId } = options;
      const which = readReplay(context, options);
      const actor = await context.actor();
      if (eventId) return { value: unwrap(await replayEvent(context, { endpointId, eventId, actor })) };
      return { value: which && (await replayAll(context, { endpointId, actor, which })) };
    },
  );
}

/** Returns which events are sent again; undefined with `--event`. Throws UsageError unless the options name one kind of them. */
function readReplay({ now }: Context, { event, since, until, givenUp }: Options): Replay | undefined {
  const named = [event, since, givenUp].filter((option) => option !== undefined);
  if (named.length !== 1 || event === "")
    throw new UsageError("expected --event, --since or --given-up, and only one of them");
  if (until !== undefined && since === undefined) throw new UsageError("--until requires --since");
  if (givenUp !== undefined) return { state: "given_up" };
  return since === undefined ? undefined : { since: new Date(since), until: until ? new Date(until) : now() };
}

async function replayAll(context: Context, args: Parameters<typeof replayEvents>[1]): Promise<{ count: number }> {
  let count = 0;
  let cursor: string | undefined;
  do {
    const part = unwrap(await replayEvents(context, { ...args, cursor }));
    count += part.count;
    cursor = part.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return { count };
}
