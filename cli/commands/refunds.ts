import type { Command } from "commander";
import { usageError } from "../cli-error.ts";
import { connect, connectMerchant } from "../connection.ts";
import { formatAmount } from "../format-amount.ts";
import { formatMembers, formatTable } from "../format-table.ts";
import { parseAmount } from "../parse-amount.ts";
import { parseCount } from "../parse-count.ts";
import { printResult, readOptions } from "../print-result.ts";
import { takeFirst } from "../take-first.ts";
import type { Terminal } from "../terminal.ts";

const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  $ pay refunds ${line}`).join("\n")}`;

/** Adds `pay refunds`. */
export function addRefundCommands(program: Command, terminal: Terminal): void {
  const refunds = program.command("refunds").description("refund payments");
  refunds
    .command("create <payment>")
    .description("refund a payment: what is left of it, or a part")
    .option("--amount <amount>", "the part, such as 5.00")
    .option("--currency <code>", "ISO 4217 code of the payment's amount", "USD")
    .option("--idempotency-key <key>", "a repeat with the same key refunds nothing; a part needs one")
    .addHelpText(
      "after",
      examples("create pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 --amount 5.00 --idempotency-key refund-1"),
    )
    .action((id: string, _options: object, command: Command) => createRefund(terminal, command, id));
  refunds
    .command("get <refund>")
    .description("show a refund")
    .addHelpText("after", examples("get rfnd_8a1f4c2d6e5b4a39b7c8d9e0f1a2b3c4"))
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connectMerchant(terminal, options);
      const refund = await client.refunds.get(id);
      printResult(terminal, options, refund, describeRefund(refund));
    });
  refunds
    .command("withdraw <refund>")
    .description("withdraw a refund that is not being sent yet: its amount can be refunded again")
    .addHelpText("after", examples("withdraw rfnd_8a1f4c2d6e5b4a39b7c8d9e0f1a2b3c4"))
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connectMerchant(terminal, options);
      const refund = await client.refunds.withdraw(id);
      printResult(terminal, options, refund, describeRefund(refund));
    });
  refunds
    .command("list")
    .description("list the latest refunds, the newest first")
    .option("--payment <id>", "only those of this payment")
    .option("--limit <count>", "how many", parseCount, 20)
    .addHelpText("after", examples("list", "list --payment pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0"))
    .action((_options: object, command: Command) => listRefunds(terminal, command));
}

type Refund = {
  refundId: string;
  paymentId: string;
  status: string;
  amount: Parameters<typeof formatAmount>[0];
  createdAt: string;
};

const describeRefund = ({ refundId, paymentId, status, amount, createdAt }: Refund) =>
  formatMembers({ id: refundId, payment: paymentId, status, amount: formatAmount(amount), created: createdAt });

async function createRefund(terminal: Terminal, command: Command, paymentId: string): Promise<void> {
  const options = readOptions<{ amount?: string; currency: string; idempotencyKey?: string }>(command);
  const { amount, currency, idempotencyKey } = options;
  const part = amount === undefined ? undefined : parseAmount(amount, currency);
  if (part && idempotencyKey === undefined)
    throw usageError("--amount needs --idempotency-key: a repeat with the same key does not refund another part");
  const { client } = await connectMerchant(terminal, options);
  const refund =
    idempotencyKey === undefined
      ? await client.refunds.create({ paymentId })
      : await client.refunds.create({ paymentId, ...(part && { amount: part }) }, { idempotencyKey });
  printResult(terminal, options, refund, describeRefund(refund));
}

async function listRefunds(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions<{ payment?: string; limit: number }>(command);
  const { payment: paymentId, limit } = options;
  const { client } = await connect(terminal, options);
  const found = await takeFirst(
    client.refunds.list({ ...(paymentId && { paymentId }), limit: Math.min(limit, 200) }),
    limit,
  );
  const toRow = (one: Refund) => [one.refundId, one.paymentId, one.status, formatAmount(one.amount), one.createdAt];
  printResult(terminal, options, found, formatTable(found.map(toRow)));
}
