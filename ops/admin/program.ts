import { Command, CommanderError } from "commander";
import { ConfigError } from "../config.ts";
import { describeBriefly } from "../redaction.ts";
import { addAccountCommands } from "./accounts.ts";
import { addCollectorCommands } from "./collector.ts";
import { addDisburserCommands } from "./disburser.ts";
import { addFailedBookingCommands } from "./failed-bookings.ts";
import { addFrameCommands } from "./frames.ts";
import { addKeystoreCommands } from "./keystore.ts";
import { addMerchantCommands } from "./merchants.ts";
import { addMoneyCommands } from "./money.ts";
import { addNetworkCommands } from "./networks.ts";
import { addPageCommands } from "./pages.ts";
import { addPaymentCommands } from "./payments.ts";
import { addPayoutCommands } from "./payouts.ts";
import { addRefundCommands } from "./refunds.ts";
import { createAddAction, RefusedError, UsageError } from "./tool.ts";
import { addWebhookCommands } from "./webhooks.ts";

/** Where a command reads its settings and writes its output and errors. */
export type Io = {
  env: NodeJS.ProcessEnv;
  write: (text: string) => void;
  writeError: (text: string) => void;
};

const groups = [
  addAccountCommands,
  addMerchantCommands,
  addFrameCommands,
  addWebhookCommands,
  addPaymentCommands,
  addPayoutCommands,
  addRefundCommands,
  addMoneyCommands,
  addFailedBookingCommands,
  addCollectorCommands,
  addDisburserCommands,
  addKeystoreCommands,
  addPageCommands,
  addNetworkCommands,
];

/**
 * Runs one operator command and returns its exit code: 0 on success, 1 when the command fails, 2 for wrong arguments. Never
 * throws.
 * @param args the arguments without the program's name
 */
export async function runAdmin(args: readonly string[], { env, write, writeError }: Io): Promise<number> {
  const program = new Command("npm run admin --")
    .description("Commands for operators. DATABASE_URL selects the database.")
    .addHelpText("after", "\nExits with 0 on success, 1 when the command fails, 2 for wrong arguments.")
    .showSuggestionAfterError(false)
    .configureOutput({ writeOut: write, writeErr: (text) => writeError(text.replace(/^error: /, "")) })
    .exitOverride();
  const addAction = createAddAction(env, (line) => write(`${line}\n`));
  for (const addCommands of groups) addCommands(program, addAction);
  inherit(program, program.commands);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return endWith(error, (text) => writeError(`${text}\n`));
  }
}

/** Copies settings of a command to its subcommands: commander does not do so for subcommands that were added before. */
function inherit(program: Command, commands: readonly Command[]): void {
  for (const one of commands) {
    one.copyInheritedSettings(program);
    inherit(program, one.commands);
  }
}

/** Prints an error in one sentence and returns the exit code. commander has printed its own errors already. */
function endWith(error: unknown, printError: (text: string) => void): number {
  if (error instanceof CommanderError) {
    // A group without a command prints its help, which counts as a wrong call.
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof UsageError || error instanceof ConfigError) {
    printError(error.message);
    return 2;
  }
  printError(error instanceof RefusedError ? error.message : describeBriefly(error));
  return 1;
}
