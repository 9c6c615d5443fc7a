import type { Command } from "commander";
import { listBlockedPayouts } from "../../payments/payout-queue.ts";
import { type Runs, wholeNumber } from "./tool.ts";

/** Payouts that wait for an obstacle to go away. */
export function addPayoutCommands(program: Command, runs: Runs): void {
  const payouts = program.command("payouts").description("settlements and refunds that are to be sent");
  runs(
    payouts
      .command("blocked")
      .description("merchants and assets whose payouts wait, and why; the longest blocked first")
      .option("--limit <number>", "at most so many", wholeNumber, "50")
      .addHelpText("after", "\nExample:\n  npm run admin -- payouts blocked --limit 10"),
    async (tool, _args, { limit }) => ({ value: await listBlockedPayouts(tool, Number(limit)) }),
  );
}
