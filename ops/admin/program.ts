import { Command, CommanderError } from "commander";
import { ConfigError } from "../../runtime/config.ts";
import { describeBriefly } from "../../runtime/redaction.ts";
import { addAccountCommands } from "./account-commands.ts";
import { addApprovalKeyCommands } from "./approval-key-commands.ts";
import { addAuditCommands } from "./audit-commands.ts";
import { addCollectorCommands } from "./collector-commands.ts";
import { createAddAction, RefusedError, toLine, UsageError } from "./command.ts";
import { addDataKeyCommands } from "./data-key-commands.ts";
import { addDestinationCommands } from "./destination-commands.ts";
import { addDisburserCommands } from "./disburser-commands.ts";
import { addFailedBookingCommands } from "./failed-booking-commands.ts";
import { addFrameCommands } from "./frame-commands.ts";
import { addKeyCommands } from "./key-commands.ts";
import { addKeystoreCommands } from "./keystore-commands.ts";
import { addMerchantCommands } from "./merchant-commands.ts";
import { addMoneyCommands } from "./money-commands.ts";
import { addNetworkCommands } from "./network-commands.ts";
import { addOperatorCommands } from "./operator-commands.ts";
import { addOperatorKeyCommands } from "./operator-key-commands.ts";
import { addPageCommands } from "./page-commands.ts";
import { addPaymentCommands } from "./payment-commands.ts";
import { addPayoutCommands } from "./payout-commands.ts";
import { addPolicyCommands } from "./policy-commands.ts";
import { addRefundCommands } from "./refund-commands.ts";
import { addRetentionCommands } from "./retention-commands.ts";
import { addStatementCommands } from "./statement-commands.ts";
import { addWebhookCommands } from "./webhook-commands.ts";

/** The command line in a folder of the sources, as the texts of `--help` write it. */
const SOURCES = "npm run admin --";

/** Where a command reads its settings and writes its output and errors. */
export type Io = {
  env: NodeJS.ProcessEnv;
  /** How an operator calls the command line: the texts of `--help` name it. Default: `npm run admin --`. */
  name?: string;
  write: (text: string) => void;
  /** `write` writes to a terminal; default: no. */
  isTerminal?: boolean;
  writeError: (text: string) => void;
};

const groups = [
  addAccountCommands,
  addKeyCommands,
  addApprovalKeyCommands,
  addMerchantCommands,
  addDestinationCommands,
  addPolicyCommands,
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
  addDataKeyCommands,
  addOperatorKeyCommands,
  addStatementCommands,
  addPageCommands,
  addNetworkCommands,
  addAuditCommands,
  addRetentionCommands,
  addOperatorCommands,
];

/**
 * Runs one operator command and returns its exit code: 0 on success, 1 when the command fails, 2 for wrong arguments. Never
 * throws.
 * @param args the arguments without the program's name
 */
export async function runAdmin(args: readonly string[], io: Io): Promise<number> {
  try {
    await createProgram(io).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    return endWith(error, (text) => io.writeError(`${text.split("\n").map(toLine).join("\n")}\n`));
  }
}

/** Returns the command line with all its commands. */
export function createProgram({ env, name = SOURCES, write, isTerminal = false, writeError }: Io): Command {
  const program = new Command(name)
    .description("Commands for operators. DATABASE_URL selects the database.")
    .addHelpText("after", "\nExits with 0 on success, 1 when the command fails, 2 for wrong arguments.")
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: (text) => write(text.replaceAll(SOURCES, name)),
      writeErr: (text) => writeError(text.replace(/^error: /, "")),
    })
    .exitOverride();
  const addAction = createAddAction(env, (line) => write(`${line}\n`), { isTerminal });
  for (const addCommands of groups) addCommands(program, addAction);
  inherit(program, program.commands);
  return program;
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
