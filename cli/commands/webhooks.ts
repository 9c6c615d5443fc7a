import type { Command } from "commander";
import { connect } from "../connection.ts";
import { formatMembers, formatTable } from "../format-table.ts";
import { printResult, readOptions } from "../print-result.ts";
import type { Terminal } from "../terminal.ts";
import { parseEventTypes } from "../trigger/scenarios.ts";

/** Adds `pay webhooks`. */
export function addWebhookCommands(program: Command, terminal: Terminal): void {
  const webhooks = program.command("webhooks").description("manage the account's webhook endpoints in test mode");
  const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  $ pay webhooks ${line}`).join("\n")}`;
  webhooks
    .command("list")
    .description("list the endpoints")
    .addHelpText("after", examples("list", "list --json"))
    .action(async (_options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connect(terminal, options);
      const found = (await client.webhookEndpoints.list()).data;
      const toRow = ({ id, status, url, eventTypes }: (typeof found)[number]) => [
        id,
        status,
        url,
        eventTypes?.join(",") ?? "all",
      ];
      printResult(terminal, options, found, formatTable(found.map(toRow)));
    });
  webhooks
    .command("create <url>")
    .description("register an https URL on the public internet, and print its secret once")
    .option("--events <types>", "only events of these types, separated by commas")
    .option("--thin", "send ids only")
    .addHelpText("after", examples("create https://shop.example.com/hooks --events payment.succeeded"))
    .action((url: string, _options: object, command: Command) => createEndpoint(terminal, command, url));
  webhooks
    .command("delete <endpoint>")
    .description("delete an endpoint")
    .addHelpText("after", examples("delete whe_7b6a5948372615f4e3d2c1b0a9f8e7d6"))
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connect(terminal, options);
      printResult(terminal, options, await client.webhookEndpoints.delete(id), [`${id} is deleted`]);
    });
  webhooks
    .command("test <endpoint>")
    .description("send a test event to an endpoint")
    .addHelpText("after", examples("test whe_7b6a5948372615f4e3d2c1b0a9f8e7d6"))
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connect(terminal, options);
      const sent = await client.webhookEndpoints.test(id);
      printResult(terminal, options, sent, [`${sent.eventId} is sent to ${id}`]);
    });
  webhooks
    .command("resend <endpoint> <event>")
    .description("send an event to an endpoint again")
    .addHelpText("after", examples("resend whe_7b6a5948372615f4e3d2c1b0a9f8e7d6 evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0"))
    .action(async (id: string, eventId: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connect(terminal, options);
      printResult(terminal, options, await client.webhookDeliveries.replay(id, eventId), [
        `${eventId} is sent to ${id} again`,
      ]);
    });
}

async function createEndpoint(terminal: Terminal, command: Command, url: string): Promise<void> {
  const options = readOptions<{ events?: string; thin?: boolean }>(command);
  const eventTypes = options.events === undefined ? null : parseEventTypes(options.events);
  const { client } = await connect(terminal, options);
  const payload = options.thin ? "thin" : "full";
  const created = await client.webhookEndpoints.create({ url, eventTypes, payload });
  const { webhookEndpoint, secret } = created;
  printResult(terminal, options, created, formatMembers({ id: webhookEndpoint.id, url: webhookEndpoint.url, secret }));
}
