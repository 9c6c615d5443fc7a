import type { Command } from "commander";
import { CliError } from "../cli-error.ts";
import { connectMerchant } from "../connection.ts";
import { printResult, readOptions } from "../print-result.ts";
import type { Terminal } from "../terminal.ts";

/** Adds `pay env`. */
export function addEnvCommand(program: Command, terminal: Terminal): void {
  program
    .command("env")
    .description("print the environment of a program that uses the service, with its key")
    .addHelpText("after", help)
    .action(async (_options: object, command: Command) => {
      const options = readOptions(command);
      const { url, apiKey, merchantId, webhookSecret } = await connectMerchant(terminal, options);
      const variables = {
        PAY_URL: url,
        PAY_API_KEY: apiKey,
        PAY_MERCHANT_ID: merchantId,
        PAY_WEBHOOK_SECRET: webhookSecret,
      };
      for (const [name, value] of Object.entries(variables))
        if (!isOneWord(value)) throw new CliError(`${name} has a blank or a character that is not ASCII`);
      printResult(
        terminal,
        options,
        variables,
        Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      );
    });
}

/** Returns true for a value that can end neither its line in a .env file nor its word in a shell. */
const isOneWord = (value: string) => /^[\x21-\x7e]+$/.test(value);

const help = `
PAY_WEBHOOK_SECRET is the secret with which \`pay listen\` signs. It stays the same for a key.

Examples:
  $ pay env > .env && node --env-file=.env shop.js
  $ export $(pay env)`;
