import type { Command } from "commander";
import { isApiKey, isMerchantId, isTestKey } from "../account-ids.ts";
import { usageError } from "../cli-error.ts";
import { connect, openClient } from "../connection.ts";
import { readBaseUrl } from "../find-credentials.ts";
import { describeMerchant, findOnlyMerchant } from "../find-merchant.ts";
import { formatMembers } from "../format-table.ts";
import { printResult, readOptions } from "../print-result.ts";
import { readLine, readSecret } from "../read-line.ts";
import { removeProfile, writeProfile } from "../stored-profile.ts";
import { print, type Terminal } from "../terminal.ts";

/** Adds `pay login`, `pay logout` and `pay whoami`. */
export function addLoginCommands(program: Command, terminal: Terminal): void {
  program
    .command("login")
    .description("check a test key and store it for this user")
    .addHelpText("after", loginHelp)
    .action((_options: object, command: Command) => logIn(terminal, command));
  program
    .command("logout")
    .description("remove the stored key")
    .addHelpText("after", "\nExample:\n  $ pay logout")
    .action(async () => {
      const isRemoved = await removeProfile(terminal.env);
      print(
        terminal,
        isRemoved ? "The stored key is removed. It still works: revoke it if others may have it." : "No key is stored.",
      );
    });
  program
    .command("whoami")
    .description("show which service, key and merchant the commands use")
    .addHelpText("after", "\nExamples:\n  $ pay whoami\n  $ pay whoami --json")
    .action((_options: object, command: Command) => showCredentials(terminal, command));
}

const loginHelp = `
The key is asked for without echo, or read from the standard input. Live keys are not stored.

Examples:
  $ pay login
  $ pay login --url https://pay.example.com < key.txt`;

async function logIn(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions(command);
  if (options.apiKey !== undefined)
    throw usageError("pay login reads the key from a prompt or from the standard input, not from --api-key");
  if (options.url === undefined && !terminal.stdin.isTTY)
    throw usageError("--url: the base URL of the service is missing");
  if (options.merchant !== undefined && !isMerchantId(options.merchant))
    throw usageError("--merchant: expected a merchant's id, mrch_ and 32 hexadecimal digits");
  const url = readBaseUrl(options.url ?? (await readLine(terminal, "Base URL of the service: ")));
  const apiKey = await readSecret(terminal, "Test key (svc_test_…): ");
  if (!isApiKey(apiKey)) throw usageError("expected an API key, which begins with svc_test_");
  if (!isTestKey(apiKey)) throw usageError("that is a live key: pay login stores test keys only");
  const merchantId = options.merchant ?? (await findOnlyMerchant(openClient({ url, apiKey, merchantId: undefined })));
  const client = openClient({ url, apiKey, merchantId });
  const merchant = await describeMerchant(client, merchantId);
  const file = await writeProfile(terminal.env, { url, apiKey, merchantId });
  print(terminal, `Logged in to ${url} as ${merchant}, test mode.`, `The key is stored in ${file}.`);
}

async function showCredentials(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions(command);
  const { client, url, apiKey, source, ...connection } = await connect(terminal, options);
  const merchantId = connection.merchantId ?? (await findOnlyMerchant(client));
  const mode = isTestKey(apiKey) ? "test" : "live";
  // A key shows its prefix and its last four characters, as in the list of API keys.
  const key = `${isTestKey(apiKey) ? "svc_test_" : "svc_"}…${apiKey.slice(-4)}`;
  const merchant = await describeMerchant(client, merchantId);
  const members = { url, mode, key, merchant, from: source };
  printResult(terminal, options, { url, mode, key, merchantId, source }, formatMembers(members));
}
