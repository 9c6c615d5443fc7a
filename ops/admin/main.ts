import { Command, CommanderError } from "commander";
import { ConfigError } from "../config.ts";
import { describeBriefly } from "../redaction.ts";
import { addAccountCommands } from "./accounts.ts";
import { addCollectorCommands } from "./collector.ts";
import { addKeystoreCommands } from "./keystore.ts";
import { addMerchantCommands } from "./merchants.ts";
import { addMoneyCommands } from "./money.ts";
import { addPaymentCommands } from "./payments.ts";
import { RefusedError, UsageError } from "./tool.ts";
import { addWebhookCommands } from "./webhooks.ts";

const program = new Command("npm run admin --")
  .description("What an operator does by hand. DATABASE_URL says which database.")
  .addHelpText("after", "\nEnds with 0 when it is done, 1 when it cannot be, 2 when it was called wrong.")
  .showSuggestionAfterError(false)
  .configureOutput({ writeErr: (text) => process.stderr.write(text.replace(/^error: /, "")) })
  .exitOverride();

addAccountCommands(program);
addMerchantCommands(program);
addWebhookCommands(program);
addPaymentCommands(program);
addMoneyCommands(program);
addCollectorCommands(program);
addKeystoreCommands(program);

// Settings of a command are not handed down to those that were added before.
const everywhere = (command: Command): void => {
  for (const one of command.commands) {
    one.copyInheritedSettings(program);
    everywhere(one);
  }
};
everywhere(program);

// Whoever reads only the first lines (head, less) closes the pipe; that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = endWith(error);
}

/** What is said in one sentence, and how the process ends. The library has said its own errors already. */
function endWith(error: unknown): number {
  if (error instanceof CommanderError) {
    // A group without a command shows its help, which is no mistake of the reader's but no success either.
    return error.exitCode === 0 ? 0 : 2;
  }
  if (error instanceof UsageError || error instanceof ConfigError) {
    console.error(error.message);
    return 2;
  }
  console.error(error instanceof RefusedError ? error.message : describeBriefly(error));
  return 1;
}
