import type { Command } from "commander";
import { listWaitingRefunds, withdrawRefund } from "../../payments/withdraw-refunds.ts";
import { readNetworks } from "../networks.ts";
import { need, type Runs, wholeNumber } from "./tool.ts";

/** Refunds that have not begun: listed, and withdrawn. */
export function addRefundCommands(program: Command, runs: Runs): void {
  const refunds = program.command("refunds").description("money that goes back to buyers");
  runs(
    refunds
      .command("list")
      .description(
        "refunds that have not begun, the oldest first: due waits for its merchant's balance, held is not served",
      )
      .option("--merchant <id>", "of one merchant")
      .option("--limit <number>", "at most so many", wholeNumber, "200"),
    async (tool, _args, { merchant: merchantId, limit }) => ({
      value: await listWaitingRefunds(tool, { merchantId, limit: Number(limit) }),
    }),
  );
  runs(
    refunds
      .command("withdraw <refund>")
      .description("take back a refund that has not begun: nothing is sent, and its amount can be refunded again")
      .addHelpText(
        "after",
        "\nRepeatable. Refused once the refund has begun; its merchant's payouts that waited behind it go on.\nReads NETWORKS_FILE for the deployment's name.\n\nExample:\n  npm run admin -- refunds withdraw rfnd_0123…",
      ),
    async (tool, [refundId = ""]) => {
      const networks = readNetworks(tool.networksFile());
      const value = need(await withdrawRefund({ db: tool.db, now: tool.now, networks }, { refundId }));
      await tool.record("refunds withdraw", refundId);
      return { value };
    },
  );
}
