import { Command, CommanderError } from "commander";
import { exitCodes } from "./cli-error.ts";
import { addEnvCommand } from "./commands/env.ts";
import { addEventCommands } from "./commands/events.ts";
import { addListenCommand } from "./commands/listen.ts";
import { addLoginCommands } from "./commands/login.ts";
import { addLogsCommand } from "./commands/logs.ts";
import { addPaymentCommands } from "./commands/payments.ts";
import { addRefundCommands } from "./commands/refunds.ts";
import { addTriggerCommand } from "./commands/trigger.ts";
import { addWebhookCommands } from "./commands/webhooks.ts";
import { describeError, exitCodeOf } from "./describe-error.ts";
import manifest from "./package.json" with { type: "json" };
import { printNote, type Terminal } from "./terminal.ts";

/**
 * Runs `pay` with these arguments. Returns its exit code: 0, 1 when the command failed, 2 when it was called wrongly, 130 when
 * Ctrl-C ended it before its work was done.
 */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    await createProgram(terminal).parseAsync([...args], { from: "user" });
    return exitCodes.done;
  } catch (error) {
    if (terminal.signal.aborted) return exitCodes.interrupted;
    // Commander has printed its own errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    printNote(terminal, `pay: ${describeError(error)}`);
    return exitCodeOf(error);
  }
}

function createProgram(terminal: Terminal): Command {
  const program = new Command("pay")
    .description("The command line of the payment service for developers. It works in test mode.")
    .version(manifest.version, "--version", "show the version")
    .option("--url <url>", "base URL of the service; needs --api-key")
    .option("--api-key <key>", "API key; needs --url; prefer PAY_API_KEY, because others can read a command's options")
    .option("--merchant <id>", "merchant to act for, if the key reaches several")
    .option("--live", "use a live key; with `npm start`, the live account on the local chains")
    .option("--json", "print JSON")
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({ writeOut: (text) => terminal.write(text), writeErr: (text) => terminal.writeError(text) })
    .showHelpAfterError("Run it with --help for examples.")
    .exitOverride()
    .addHelpText("after", help);
  for (const add of commands) add(program, terminal);
  return program;
}

const commands: readonly ((program: Command, terminal: Terminal) => void)[] = [
  addLoginCommands,
  addEnvCommand,
  addListenCommand,
  addTriggerCommand,
  addPaymentCommands,
  addRefundCommands,
  addEventCommands,
  addWebhookCommands,
  addLogsCommand,
];

const help = `
Credentials are taken from the options, from PAY_URL, PAY_API_KEY and PAY_MERCHANT_ID, from \`pay login\`, or from the
stack that \`npm start\` runs, whichever comes first.

Examples:
  $ pay listen --forward-to localhost:3000/hooks
  $ pay trigger payment.succeeded
  $ pay payments create --amount 12.50 --currency USD
  $ pay logs --follow --status 4xx`;
