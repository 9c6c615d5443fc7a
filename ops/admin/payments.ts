import type { Command } from "commander";
import { readCollected } from "../../payments/collect.ts";
import { type Dossier, readDossier } from "../../payments/dossier.ts";
import { listPaymentLines, retryPayment } from "../../payments/operators.ts";
import { describe, oneOf, RefusedError, type Runs, show, time, wholeNumber } from "./tool.ts";

const states = oneOf("requires_action", "processing", "succeeded", "failed", "expired", "cancelled");

/** Payments: found, shown with all that happened to them, and made to go on. */
export function addPaymentCommands(program: Command, runs: Runs): void {
  const payments = program.command("payments").description("payments of every merchant");
  runs(
    payments
      .command("list")
      .description("the newest first")
      .option("--account <id>", "of one account")
      .option("--merchant <id>", "of one merchant")
      .option("--state <state>", "in one state", states)
      .option("--since <time>", "made since then", time)
      .option("--limit <number>", "at most so many", wholeNumber, "50"),
    async (tool, _args, { account: accountId, merchant: merchantId, state, since, limit }) => ({
      value: await listPaymentLines(tool, {
        accountId,
        merchantId,
        state: state as ReturnType<typeof states> | undefined,
        since: since === undefined ? undefined : new Date(since),
        limit: Number(limit),
      }),
    }),
  );
  runs(
    payments
      .command("show <payment>")
      .description("one payment: events, attempts, transfers, transactions, payout, ledger, webhooks")
      .addHelpText("after", "\nExample:\n  npm run admin -- payments show pay_0123…"),
    async (tool, [id = ""]) => {
      const dossier = await readDossier(tool, id);
      if (!dossier) throw new RefusedError(`there is no payment ${id}`);
      return { value: dossier, lines: describeDossier(dossier) };
    },
  );
  runs(
    program
      .command("retry <payment>")
      .description("ring at once for everything that a payment still owes; harmless at any time")
      .addHelpText(
        "after",
        "\nA job that failed and is kept in a queue is retried in bull-board; this works without Redis.",
      ),
    async (tool, [id = ""]) => {
      const rung = await retryPayment(tool, id);
      if (!rung) throw new RefusedError(`there is no payment ${id}`);
      await tool.record("retry", id);
      const told = Object.entries(rung).filter(([, count]) => count > 0);
      const lines = told.length > 0 ? told.map(([kind, count]) => `${count} ${kind} due now`) : ["nothing is owed"];
      return { value: rung, lines };
    },
  );
  const collected = program.command("collected-data").description("what buyers had to say of themselves");
  runs(
    collected.command("show <payment>").description("opens it; who did so is written down"),
    async (tool, [id = ""]) => {
      const sealer = tool.sealer();
      await tool.record("collected-data show", id);
      const kept = await readCollected({ ...tool, sealer }, id);
      return { value: kept, lines: kept.length > 0 ? kept.flatMap((one) => describe(one)) : ["nothing is kept"] };
    },
  );
}

function describeDossier({
  payment,
  attempts,
  transfers,
  transactions,
  settlement,
  moves,
  ledger,
  webhooks,
}: Dossier): string[] {
  const table = (title: string, rows: readonly object[]) => [
    "",
    title,
    ...describe(rows.map((row) => ({ ...row }))).map((line) => `  ${line}`),
  ];
  const told = moves.map(({ at, machine, subject, from, to, detail }) => ({
    at,
    what: machine,
    move: `${from} > ${to}`,
    subject,
    detail: detail === null ? "" : show(detail),
  }));
  return [
    ...describe(payment),
    ...table("History", told),
    ...table("Attempts", attempts),
    ...table("Transfers", transfers),
    ...table("Transactions", transactions),
    ...table("Payout", settlement ? [settlement] : []),
    ...table("Ledger", ledger),
    ...table("Webhooks", webhooks),
  ];
}
