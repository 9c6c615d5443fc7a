import type { Command } from "commander";
import type { Mode } from "../../db/tables.ts";
import { listDeliveries, replayEvents } from "../../payments/webhook-events.ts";
import { deleteEndpoint, findEndpoint, rotateSecret, setEndpoint } from "../../payments/webhooks.ts";
import { need, oneOf, type Runs, time, UsageError, wholeNumber } from "./tool.ts";

const mode = oneOf("live", "test");
const states = oneOf("pending", "delivered", "given_up");

type Options = Record<string, string | undefined>;
const ownerOf = ({ account = "", mode }: Options) => ({ accountId: account, mode: mode as Mode });

/** Where accounts hear of their payments, and what they were told. */
export function addWebhookCommands(program: Command, runs: Runs): void {
  const webhooks = program.command("webhooks").description("where an account hears of its payments");
  const about = (name: string, what: string) =>
    webhooks
      .command(name)
      .description(what)
      .requiredOption("--account <id>", "whose endpoint")
      .requiredOption("--mode <mode>", "live or test", mode);
  runs(
    about("set", "register or move the endpoint; its new secret is shown this once").requiredOption(
      "--url <url>",
      "over https",
    ),
    async (tool, _args, options) => {
      const deps = { ...tool, sealer: tool.sealer() };
      const value = need(await setEndpoint(deps, { ...ownerOf(options), url: options.url ?? "" }));
      await tool.record("webhooks set", value.id);
      return { value };
    },
  );
  runs(about("show", "the endpoint, without its secret"), async (tool, _args, options) => ({
    value: need(await findEndpoint(tool, ownerOf(options))),
  }));
  runs(
    about("rotate", "give it a new secret, shown this once; the old one signs for a day more"),
    async (tool, _args, options) => {
      const value = need(await rotateSecret({ ...tool, sealer: tool.sealer() }, ownerOf(options)));
      await tool.record("webhooks rotate", options.account ?? "");
      return { value };
    },
  );
  runs(about("delete", "tell it nothing more"), async (tool, _args, options) => {
    const value = need(await deleteEndpoint(tool, ownerOf(options)));
    await tool.record("webhooks delete", value.id);
    return { value };
  });
  runs(
    about("deliveries", "what it was told, the newest first")
      .option("--payment <id>", "of one payment")
      .option("--state <state>", "pending, delivered or given_up", states)
      .option("--limit <number>", "at most so many", wholeNumber, "50"),
    async (tool, _args, options) => {
      const { payment: paymentId, state, limit } = options;
      const asked = { paymentId, state: state as ReturnType<typeof states> | undefined, limit: Number(limit) };
      return { value: need(await listDeliveries(tool, { ...ownerOf(options), ...asked })) };
    },
  );
  runs(
    about("replay", "send events again under their own ids: one, those of a time, or those given up")
      .option("--event <id>", "one event")
      .option("--since <time>", "from this time, and", time)
      .option("--until <time>", "up to this one; now when it is left out", time)
      .option("--given-up", "those that were given up"),
    async (tool, _args, options) => {
      const { event: eventId, since, until } = options;
      const which = eventId
        ? { eventId }
        : since
          ? { since: new Date(since), until: until ? new Date(until) : tool.now() }
          : options.givenUp
            ? { state: "given_up" as const }
            : undefined;
      if (!which) throw new UsageError("expected --event, --since or --given-up");
      const value = need(await replayEvents(tool, { ...ownerOf(options), ...which }));
      await tool.record("webhooks replay", eventId ?? options.account ?? "");
      return { value };
    },
  );
}
