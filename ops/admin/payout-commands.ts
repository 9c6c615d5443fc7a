import type { Command } from "commander";
import { claimAllDeposits } from "../../payments/payouts/claim-all-deposits.ts";
import { listBlockedPayouts } from "../../payments/payouts/dispatch-payouts.ts";
import { readAdminConfig } from "../../runtime/config.ts";
import { openSigner } from "../../signer/open-signer.ts";
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
  addAction(
    payouts
      .command("claim-deposits")
      .description("let the signer verify the deposits of every payment; needed after its records were lost")
      .addHelpText("after", "\nSIGNER selects the signer.\n\nExample:\n  npm run admin -- payouts claim-deposits"),
    async ({ db, env, log }) => {
      const signer = openSigner(readAdminConfig(env), {
        treasuryKeys: new Map(),
        chains: new Map(),
        deployment: "",
        log,
      });
      try {
        const { verified, refused } = await claimAllDeposits({ db, signer });
        const value = { verified, refused };
        return Object.keys(refused).length === 0
          ? { value }
          : { value, refusal: "the signer refuses some deposits: its log names each" };
      } finally {
        signer.close();
      }
    },
  );
}
