import type { Command } from "commander";
import { Registry } from "prom-client";
import { openChains } from "../../chains/open-chains.ts";
import { claimAllDeposits } from "../../payments/payouts/claim-all-deposits.ts";
import { listBlockedPayouts } from "../../payments/payouts/dispatch-payouts.ts";
import { renewPayouts } from "../../payments/payouts/renew-payouts.ts";
import { readAdminConfig } from "../../runtime/config.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { openScreeningList } from "../../runtime/screening-list.ts";
import { openSigner } from "../../signer/open-signer.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { type AddAction, type Context, RefusedError, wholeNumber } from "./command.ts";
import { addWithdrawalCommand } from "./withdrawal-command.ts";

/** Adds the commands about payouts that are not sent yet. */
export function addPayoutCommands(program: Command, addAction: AddAction): void {
  const payouts = program.command("payouts").description("settlements, refunds and withdrawals that are not sent yet");
  addWithdrawalCommand(payouts, addAction);
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
      .description("let the signer verify the deposits of every payment, and exceptions that were assigned to payments")
      .addHelpText("after", "\nSIGNER selects the signer.\n\nExample:\n  npm run admin -- payouts claim-deposits"),
    async (context) => {
      const { db } = context;
      const signer = connect(context);
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
  addAction(
    payouts
      .command("renew")
      .description("let the treasury sign unsent payouts again that have failed, or that a former treasury has signed")
      .addHelpText(
        "after",
        "\nSIGNER selects the signer, and SCREENING_LIST_FILE names the workers' list.\n\nExample:\n  npm run admin -- payouts renew",
      ),
    async (context) => {
      const { db, env, log, now, networksFile, actor } = context;
      const { SIGNER, SCREENING_LIST_FILE: list } = readAdminConfig(env);
      if (SIGNER === "embedded")
        throw new RefusedError("an embedded signer has no records: it would sign payouts that were made before");
      const metrics = createMetrics(new Registry(), "worker");
      const chains = openChains(readNetworks(networksFile()), metrics);
      const screeningList = list ? openScreeningList(list, { log, now }) : () => new Set<string>();
      const signer = connect(context);
      try {
        const value = await renewPayouts({ db, now, chains, signer, screeningList, metrics }, await actor());
        return Object.keys(value.refused).length === 0
          ? { value }
          : {
              value,
              refusal:
                "some payouts are not signed again: those with may_be_sent were in a transaction; the signer's log names those that it refuses",
            };
      } finally {
        signer.close();
      }
    },
  );
}

function connect({ env, log }: Pick<Context, "env" | "log">): TreasurySigner {
  return openSigner(readAdminConfig(env), { treasuryKeys: new Map(), chains: new Map(), deployment: "", log });
}
