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
import { RefusedError, runsWith, UsageError } from "./tool.ts";
import { addWebhookCommands } from "./webhooks.ts";

/** Where a command finds its settings, and what takes its answers and its complaints. */
export type Place = {
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
 * Runs one command of an operator; gives the exit code: 0 when it is done, 1 when it cannot be, 2 when it was called
 * wrong. Throws nothing.
 * @param args as the shell gives them, without the program's name
 */
export async function runAdmin(args: readonly string[], { env, write, writeError }: Place): Promise<number> {
  const program = new Command("npm run admin --")
    .description("What an operator does by hand. DATABASE_URL says which database.")
    .addHelpText("after", "\nEnds with 0 when it is done, 1 when it cannot be, 2 when it was called wrong.")
    .showSuggestionAfterError(false)
    .configureOutput({ writeOut: write, writeErr: (text) => writeError(text.replace(/^error: /, "")) })
    .exitOverride();
  const runs = runsWith(env, (line) => write(`${line}\n`));
  for (const addCommands of groups) addCommands(program, runs);
  inherit(program, program.commands);
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return endWith(error, (text) => writeError(`${text}\n`));
  }
}

/** Settings of a command are not handed down to those that were added before. */
function inherit(program: Command, commands: readonly Command[]): void {
  for (const one of commands) {
    one.copyInheritedSettings(program);
    inherit(program, one.commands);
  }
}

/** What is said in one sentence, and how the process ends. The library has said its own errors already. */
function endWith(error: unknown, complain: (text: string) => void): number {
  if (error instanceof CommanderError) {
    // A group without a command shows its help, which is no mistake of the reader's but no success either.
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof UsageError || error instanceof ConfigError) {
    complain(error.message);
    return 2;
  }
  complain(error instanceof RefusedError ? error.message : describeBriefly(error));
  return 1;
}
