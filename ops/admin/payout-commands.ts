import type { Command } from "commander";
import { listBlockedPayouts } from "../../payments/payouts/dispatch-payouts.ts";
import { type AddAction, wholeNumber } from "./command.ts";

/** Adds the command that lists blocked payouts. */
export function addPayoutCommands(program: Command, addAction: AddAction): void {
  const payouts = program.command("payouts").description("settlements and refunds that are not sent yet");
  addAction(
    payouts
      .command("blocked")
      .description("list the merchants and assets whose payouts are blocked, with the reason, longest blocked first")
      .option("--limit <number>", "most rows to list", wholeNumber, "50")
      .addHelpText("after", "\nExample:\n  npm run admin -- payouts blocked --limit 10"),
    async (context, _args, { limit }) => ({ value: await listBlockedPayouts(context, Number(limit)) }),
  );
}
