import type { Command } from "commander";
import { listDeliveries, replayEvents } from "../../payments/webhooks/replay-events.ts";
import { deleteEndpoint, findEndpoint, rotateSecret, setEndpoint } from "../../payments/webhooks/webhook-endpoints.ts";
import { type AddAction, type Context, oneOf, parseMode, time, UsageError, unwrap, wholeNumber } from "./command.ts";

const parseState = oneOf("pending", "delivered", "given_up");

type Options = Record<string, string | undefined>;
const ownerOf = ({ account = "", mode }: Options) => ({ accountId: account, mode: parseMode(mode) });
const changing = async (context: Context, options: Options) => ({
  ...ownerOf(options),
  actor: await context.actor(),
});

/** Adds the commands for webhook endpoints and their deliveries. */
export function addWebhookCommands(program: Command, addAction: AddAction): void {
  const webhooks = program.command("webhooks").description("the webhook endpoint of an account, and its deliveries");
  const addCommand = (name: string, what: string) =>
    webhooks
      .command(name)
      .description(what)
      .requiredOption("--account <id>", "the account of the endpoint")
      .requiredOption("--mode <mode>", "live or test", parseMode);
  addAction(
    addCommand("set", "register or change the endpoint; its new secret is shown only once").requiredOption(
      "--url <url>",
      "its URL, over https",
    ),
    async (context, _args, options) => {
      const deps = { ...context, encryptWebhookSecret: context.encryptWebhookSecret() };
      const value = unwrap(
        await setEndpoint(deps, { ...(await changing(context, options)), url: options["url"] ?? "" }),
      );
      return { value };
    },
  );
  addAction(addCommand("show", "show the endpoint without its secret"), async (context, _args, options) => ({
    value: unwrap(await findEndpoint(context, ownerOf(options))),
  }));
  addAction(
    addCommand("rotate", "create a new secret, which is shown only once; the old one signs for one more day").option(
      "--now",
      "for a secret that has leaked: the old one stops signing at once",
    ),
    async (context, _args, options) => {
      const deps = { ...context, encryptWebhookSecret: context.encryptWebhookSecret() };
      const now = options["now"] !== undefined;
      return { value: unwrap(await rotateSecret(deps, { ...(await changing(context, options)), now })) };
    },
  );
  addAction(addCommand("delete", "delete the endpoint"), async (context, _args, options) => {
    return { value: unwrap(await deleteEndpoint(context, await changing(context, options))) };
  });
  addAction(
    addCommand("deliveries", "list deliveries, newest first")
      .option("--payment <id>", "only of this payment")
      .option("--state <state>", "pending, delivered or given_up", parseState)
      .option("--limit <number>", "most deliveries to list", wholeNumber, "50"),
    async (context, _args, options) => {
      const { payment: paymentId, state, limit } = options;
      const query = { paymentId, state: state === undefined ? undefined : parseState(state), limit: Number(limit) };
      return { value: unwrap(await listDeliveries(context, { ...ownerOf(options), ...query })) };
    },
  );
  addAction(
    addCommand("replay", "send events again under their own ids: one, all of a period, or all that were given up")
      .option("--event <id>", "this event")
      .option("--since <time>", "events from this time on", time)
      .option("--until <time>", "events up to this time (default: now)", time)
      .option("--given-up", "events that were given up"),
    async (context, _args, options) => {
      const { event: eventId, since, until } = options;
      const which = eventId
        ? { eventId }
        : since
          ? { since: new Date(since), until: until ? new Date(until) : context.now() }
          : options["givenUp"]
            ? { state: "given_up" as const }
            : undefined;
      if (!which) throw new UsageError("expected --event, --since or --given-up");
      return { value: unwrap(await replayEvents(context, { ...(await changing(context, options)), ...which })) };
    },
  );
}
