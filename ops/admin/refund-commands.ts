import type { Command } from "commander";
import { approveReturn } from "../../payments/payouts/approve-return.ts";
import { findRefundView, listRefundViews } from "../../payments/payouts/find-refunds.ts";
import { type RefundStatus, refundStatuses } from "../../payments/payouts/refund-views.ts";
import { withdrawRefund } from "../../payments/payouts/withdraw-refunds.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { type AddAction, oneOf, parseMinorUnits, UsageError, unwrap, wholeNumber } from "./command.ts";
import { requireMerchant } from "./require-merchant.ts";
import { requirePayment } from "./require-payment.ts";
import { addSigningOptions, readSigningKey } from "./signing-options.ts";

const parseStatus = oneOf(...refundStatuses);

const APPROVE_HELP = `
Take asset, amount, receiver and transaction from an explorer of the chain, and not from "refunds list": who can write the
database can change what is listed. The command signs what you name, and is refused (exit 1) when the refund names
something else. An approval counts for a day; approve the refund once more when it has waited for longer.

Example:
  npm run admin -- refunds approve rfnd_0123… --asset eip155:1/erc20:0x… --amount 3000000 --receiver 0x… \\
    --transaction 0x… --sign alice.key --as alice`;

/** Adds the commands that show and list refunds, and withdraw those that have not begun. */
export function addRefundCommands(program: Command, addAction: AddAction): void {
  const refunds = program.command("refunds").description("refunds to buyers");
  addAction(
    refunds
      .command("list")
      .description(
        "list refunds, the newest first; pending: waits for the merchant's balance, inventory or its turn (reason), held: the receiver is not served",
      )
      .option("--merchant <id>", "only of this merchant")
      .option("--payment <id>", "only of this payment")
      .option("--status <status>", `${refundStatuses.join(", ")}; default: pending and held`, parseStatus)
      .option("--limit <number>", "most refunds to list", wholeNumber, "200"),
    async (context, _args, { merchant, payment: paymentId, status, limit }) => {
      if (merchant !== undefined) await requireMerchant(context, merchant);
      if (paymentId !== undefined) await requirePayment(context, paymentId);
      const statuses: readonly RefundStatus[] = status === undefined ? ["pending", "held"] : [parseStatus(status)];
      const filter = { merchantIds: merchant === undefined ? undefined : [merchant], paymentId, statuses };
      return { value: unwrap(await listRefundViews(context, { ...filter, limit: Number(limit) })).items };
    },
  );
  addAction(
    refunds.command("show <refund>").description("show a refund with its status and its transaction"),
    async (context, [refundId = ""]) => ({ value: unwrap(await findRefundView(context, { refundId })) }),
  );
  addAction(
    refunds
      .command("withdraw <refund>")
      .description(
        "withdraw a refund that has not begun: nothing is sent, and its amount can be refunded or returned again",
      )
      .addHelpText(
        "after",
        "\nSafe to repeat. Refused once the refund has begun. Payouts of the merchant that waited behind it continue.\nThe money of a withdrawn return is an open exception again, with a new id (exceptions list).\nReads NETWORKS_FILE for the deployment's name.\n\nExample:\n  npm run admin -- refunds withdraw rfnd_0123…",
      ),
    async (context, [refundId = ""]) => {
      const networks = readNetworks(context.networksFile());
      const deps = { db: context.db, now: context.now, networks };
      return { value: unwrap(await withdrawRefund(deps, { actor: await context.actor(), refundId })) };
    },
  );
  addAction(
    addSigningOptions(
      refunds
        .command("approve <refund>")
        .description("approve a refund that returns money without a payment; the signer requires two operators")
        .requiredOption("--asset <caip19>", "the asset that came")
        .requiredOption("--amount <minor units>", "the amount that goes back", parseMinorUnits)
        .requiredOption("--receiver <address>", "the account that sent it")
        .requiredOption("--transaction <hash>", "the transaction that brought it"),
    ).addHelpText("after", APPROVE_HELP),
    async (context, [refundId = ""], { asset = "", amount = "", receiver = "", transaction = "", ...options }) => {
      const by = readSigningKey(context, options);
      if (!by) throw new UsageError("an approval must be signed: name the key file");
      const verified = { asset, amount: BigInt(amount), receiver, txHash: transaction };
      const actor = await context.actor("approver");
      return { value: unwrap(await approveReturn(context, { refundId, verified, by, actor })) };
    },
  );
}
