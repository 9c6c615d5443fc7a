import type { Command } from "commander";
import { parseAccountId } from "../../chains/caip.ts";
import { listPaymentsNamed } from "../../db/queries/payment-references.ts";
import { readCollected } from "../../payments/buyer-data/collected-data.ts";
import { deleteCollected } from "../../payments/buyer-data/delete-collected.ts";
import { listPaymentLines, retryPayment } from "../../payments/maintenance/operator-actions.ts";
import { type PaymentReport, readPaymentReport } from "../../payments/maintenance/payment-report.ts";
import { requireAccount } from "./account-commands.ts";
import {
  type AddAction,
  describe,
  oneOf,
  RefusedError,
  show,
  TIMES,
  time,
  UsageError,
  wholeNumber,
} from "./command.ts";
import { describeLanes, readLanesOf } from "./lane-funds.ts";
import { requireMerchant } from "./require-merchant.ts";
import { requirePayment } from "./require-payment.ts";

/** Most payments that are listed when one id names several, such as the payments of a payout. */
const MOST_NAMED = 1_000;

const parseState = oneOf("requires_action", "processing", "succeeded", "failed", "expired", "cancelled");

/** Adds the commands that list, show and retry payments, and that show their collected buyer data. */
export function addPaymentCommands(program: Command, addAction: AddAction): void {
  const payments = program.command("payments").description("payments of all merchants");
  addAction(
    payments
      .command("list")
      .description("list payments, newest first")
      .option("--account <id>", "only of this account")
      .option("--merchant <id>", "only of this merchant")
      .option("--state <state>", "only in this state", parseState)
      .option("--since <time>", `only created since this time (${TIMES})`, time)
      .option("--limit <number>", "most payments to list", wholeNumber, "50"),
    async (context, _args, { account: accountId, merchant: merchantId, state, since, limit }) => {
      if (accountId !== undefined) await requireAccount(context, accountId);
      if (merchantId !== undefined) await requireMerchant(context, merchantId);
      const value = await listPaymentLines(context, {
        accountId,
        merchantId,
        state: state === undefined ? undefined : parseState(state),
        since: since === undefined ? undefined : new Date(since),
        limit: Number(limit),
      });
      return { value };
    },
  );
  addAction(
    payments
      .command("show <id>")
      .description("show a payment: events, attempts, transfers, transactions, payout, ledger entries, webhooks")
      .addHelpText(
        "after",
        `
The id is that of a payment, option, attempt, transfer, payout or refund, a transaction's hash or signature, or the
merchant's reference. When it names several payments, they are listed, 1,000 at most.

Examples:
  npm run admin -- payments show pay_0123…
  npm run admin -- payments show 0x4567…`,
      ),
    async (context, [named = ""]) => {
      const [id, ...others] = await listPaymentsNamed(context.db, named, MOST_NAMED);
      if (id !== undefined && others.length > 0)
        return { value: await listPaymentLines(context, { ids: [id, ...others], limit: MOST_NAMED }) };
      const report = id === undefined ? undefined : await readPaymentReport(context, id);
      if (!report) throw new RefusedError(`there is no payment ${named}, and none to which it belongs`);
      const lanes = await readLanesOf(context, report.transfers);
      const shown = lanes.length > 0 ? table("Lanes", describeLanes(context, lanes)) : [];
      return { value: { ...report, lanes }, lines: [...describeReport(context.readable(report)), ...shown] };
    },
  );
  addAction(
    payments
      .command("retry <payment>")
      .description("enqueue all unfinished work of a payment now; safe at any time")
      .addHelpText(
        "after",
        "\nIt works without Redis. To run a failed job again that is kept in a queue, use the console.",
      ),
    async (context, [id = ""]) => {
      const retried = await retryPayment(context, { actor: await context.actor(), paymentId: id });
      if (!retried) throw new RefusedError(`there is no payment ${id}`);
      const { due, payoutsHeldSince } = retried;
      const counts = Object.entries(due).filter(([, count]) => count > 0);
      const lines = counts.length > 0 ? counts.map(([kind, count]) => `${count} ${kind} due now`) : ["nothing is due"];
      const held = `payouts to the merchant are held since ${show(payoutsHeldSince)}: nothing is paid out until \`merchants release\``;
      return { value: { ...due, payoutsHeldSince }, lines: payoutsHeldSince ? [...lines, held] : lines };
    },
  );
  const collected = program.command("collected-data").description("collected buyer data");
  addAction(
    collected.command("show <payment>").description("decrypt and show it; the access is recorded in the audit log"),
    async (context, [id = ""]) => {
      const decryptBuyerData = context.decryptWith("buyer-data");
      await requirePayment(context, id);
      await context.record("collected_data.read", id);
      const kept = await readCollected({ ...context, decryptBuyerData }, id);
      return { value: kept, lines: kept.length > 0 ? kept.flatMap((one) => describe(one)) : ["none"] };
    },
  );
  addAction(
    collected
      .command("delete")
      .description("delete it now, of one payment or of a buyer's account in all payments")
      .option("--payment <id>", "the data of this payment's buyer")
      .option("--account <account>", "the data of this paying account, as `collected-data show` prints it (CAIP-10)"),
    async (context, _args, { payment: paymentId, account }) => {
      const of = paymentId ? { paymentId } : account ? { account } : undefined;
      if (!of || (paymentId && account)) throw new UsageError("expected --payment or --account");
      if (account && !parseAccountId(account))
        throw new UsageError("--account: expected a CAIP-10 account such as eip155:8453:0x…");
      if (paymentId) await requirePayment(context, paymentId);
      return { value: await deleteCollected(context, { of, actor: await context.actor() }) };
    },
  );
}

/** Returns rows under a title. */
const table = (title: string, rows: readonly object[]): string[] => [
  "",
  title,
  ...describe(
    rows.map((row) => ({ ...row })),
    118,
  ).map((line) => `  ${line}`.trimEnd()),
];

function describeReport({
  payment,
  attempts,
  transfers,
  transactions,
  settlement,
  moves,
  ledger,
  webhooks,
  removed,
}: PaymentReport): string[] {
  const history = moves.map(({ at, machine, subject, from, to, detail }) => ({
    at,
    what: machine,
    move: `${from} > ${to}`,
    subject,
    detail: detail === null ? "" : show(detail),
  }));
  const left = removed.length > 0 ? [`rows that have left after their retention: ${removed.join(", ")}`] : [];
  return [
    ...describe(payment),
    ...left,
    ...table("History", history),
    ...table("Attempts", attempts),
    ...table("Transfers", transfers),
    ...table("Transactions", transactions),
    ...table("Payout", settlement ? [settlement] : []),
    ...table("Ledger", ledger),
    ...table("Webhooks", webhooks),
  ];
}
