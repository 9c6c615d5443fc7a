import { type Command, Option } from "commander";
import type { PaymentStatus } from "../../client/index.ts";
import { usageError } from "../cli-error.ts";
import { connect, connectMerchant } from "../connection.ts";
import { formatAmount } from "../format-amount.ts";
import { formatMembers, formatTable } from "../format-table.ts";
import { parseAmount } from "../parse-amount.ts";
import { parseCount } from "../parse-count.ts";
import { type Family, families } from "../pay-as-buyer.ts";
import { payPayment } from "../pay-payment.ts";
import { printResult, readOptions } from "../print-result.ts";
import { takeFirst } from "../take-first.ts";
import type { Terminal } from "../terminal.ts";

type CreateOptions = {
  amount: string;
  currency: string;
  reference?: string;
  description?: string;
  metadata?: Record<string, string>;
  idempotencyKey?: string;
};

const statuses: readonly PaymentStatus[] = [
  "requires_action",
  "processing",
  "succeeded",
  "failed",
  "expired",
  "cancelled",
];

const examples = (...lines: string[]) => `\nExamples:\n${lines.map((line) => `  $ pay payments ${line}`).join("\n")}`;

/** Adds `pay payments`. */
export function addPaymentCommands(program: Command, terminal: Terminal): void {
  const payments = program.command("payments").description("create, read, cancel and pay payments");
  payments
    .command("create")
    .description("create a payment")
    .requiredOption("--amount <amount>", "such as 12.50")
    .option("--currency <code>", "ISO 4217 code", "USD")
    .option("--reference <id>", "your own id of the order")
    .option("--description <text>", "what it is for")
    .option("--metadata <key=value>", "your own data; repeat it for several", collectMetadata)
    .option("--idempotency-key <key>", "a repeat with the same key creates nothing")
    .addHelpText(
      "after",
      examples("create --amount 12.50", "create --amount 1500 --currency JPY --reference order-7 --metadata shop=3"),
    )
    .action((_options: object, command: Command) => createPayment(terminal, command));
  payments
    .command("get <payment>")
    .description("show a payment")
    .addHelpText("after", examples("get pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 --json"))
    .action((id: string, _options: object, command: Command) => showPayment(terminal, command, id));
  payments
    .command("list")
    .description("list the latest payments, the newest first")
    .addOption(new Option("--status <status>", "only payments in this state").choices(statuses))
    .option("--reference <text>", "only payments whose reference contains this text")
    .option("--limit <count>", "how many", parseCount, 20)
    .addHelpText("after", examples("list", "list --status succeeded --limit 5"))
    .action((_options: object, command: Command) => listPayments(terminal, command));
  payments
    .command("cancel <payment>")
    .description("cancel an open payment")
    .addHelpText("after", examples("cancel pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0"))
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions(command);
      const { client } = await connectMerchant(terminal, options);
      const cancelled = await client.payments.cancel(id);
      printResult(terminal, options, cancelled, [`${id} is ${cancelled.status}`]);
    });
  payments
    .command("pay <payment>")
    .description("pay a payment: as a test wallet, or with --live as a buyer of the stack that `npm start` runs")
    .addOption(new Option("--chain <family>", "with --live: where the buyer pays").choices(families).default("evm"))
    .addHelpText(
      "after",
      examples(
        "pay pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0",
        "pay pay_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0 --live --chain solana",
      ),
    )
    .action(async (id: string, _options: object, command: Command) => {
      const options = readOptions<{ chain: Family }>(command);
      const connection = await connectMerchant(terminal, options);
      const status = await payPayment(connection, id, { family: options.chain, signal: terminal.signal });
      printResult(
        terminal,
        options,
        status,
        formatMembers({ payment: id, status: status.status, transaction: status.info?.txId }),
      );
    });
}

function collectMetadata(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (key === undefined || value === undefined) throw usageError(`--metadata: expected key=value, and got ${text}`);
  return { ...before, [key]: value };
}

async function createPayment(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions<CreateOptions>(command);
  const { currency, reference: referenceId, description, metadata, idempotencyKey } = options;
  const amount = parseAmount(options.amount, currency);
  const { client } = await connectMerchant(terminal, options);
  const optional = {
    ...(referenceId && { referenceId }),
    ...(description && { description }),
    ...(metadata && { metadata }),
  };
  const made = await client.payments.create(
    { amount, ...optional },
    idempotencyKey === undefined ? {} : { idempotencyKey },
  );
  const shown = `${options.amount} ${currency.toUpperCase()}`;
  const expires = new Date(made.expiresAt * 1_000).toISOString();
  const members = { id: made.id, status: made.status, amount: shown, link: made.gatewayUrl, expires };
  const warnings = made.warnings.map(({ field, message }) => `warning: ${field} ${message}`);
  printResult(terminal, options, made, [...formatMembers(members), ...warnings]);
}

async function showPayment(terminal: Terminal, command: Command, id: string): Promise<void> {
  const options = readOptions(command);
  const { client } = await connectMerchant(terminal, options);
  const payment = await client.payments.get(id);
  const { paymentId, status, amount, referenceId, createdAt } = payment;
  const members = {
    id: paymentId,
    status,
    amount: formatAmount(amount),
    reference: referenceId ?? undefined,
    created: createdAt,
  };
  printResult(terminal, options, payment, formatMembers(members));
}

async function listPayments(terminal: Terminal, command: Command): Promise<void> {
  const options = readOptions<{ status?: PaymentStatus; reference?: string; limit: number }>(command);
  const { status, reference: referenceId, limit, merchant } = options;
  const { client } = await connect(terminal, options);
  const filter = {
    ...(status && { status: [status] }),
    ...(referenceId && { referenceId }),
    ...(merchant && { merchantId: [merchant] }),
  };
  const found = await takeFirst(client.payments.list({ ...filter, limit: Math.min(limit, 200) }), limit);
  const toRow = (one: (typeof found)[number]) => [
    one.paymentId,
    one.status,
    formatAmount(one.fiatAmount),
    one.referenceId ?? "",
    one.createdAt,
  ];
  printResult(terminal, options, found, formatTable(found.map(toRow)));
}
