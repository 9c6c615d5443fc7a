import { type Command, InvalidArgumentError } from "commander";
import { correctLedger, readBalances } from "../../payments/corrections.ts";
import { assignException, bookException, listExceptions, returnException } from "../../payments/exceptions.ts";
import { clearFee, listFees, setFee } from "../../payments/fees.ts";
import { toDecimal } from "../../payments/list.ts";
import { findMerchantOwner, listAccounts } from "../../payments/operators.ts";
import { readStatements, toCsv } from "../../payments/statement.ts";
import { describe, need, oneOf, RefusedError, type Runs, type Tool, UsageError, wholeNumber } from "./tool.ts";

/** Money that belongs to nobody yet, and the books. */
export function addMoneyCommands(program: Command, runs: Runs): void {
  addExceptionCommands(program, runs);
  addFeeCommands(program, runs);
  addStatementCommand(program, runs);
  const ledger = program.command("ledger").description("the books: double entry, in minor units");
  runs(
    ledger
      .command("balances")
      .description("what every account holds; a debit is positive")
      .option("--account <name>", "one account, for example treasury or payable:mrch_…")
      .option("--asset <caip19>", "one asset")
      .option("--day <date>", "at the end of that day, UTC, for example 2026-03-31"),
    async (tool, _args, { account, asset, day }) => {
      if (day !== undefined && !isDay(day)) throw new UsageError("--day: expected a date such as 2026-03-31");
      return { value: await readBalances(tool, { account, asset, day }) };
    },
  );
  for (const [name, as, what] of [
    ["capital", "capital", "an open exception was the operator's own: put in, or taken out"],
    ["loss", "losses", "an open exception is lost, or found and kept"],
  ] as const)
    runs(
      ledger.command(`${name} <exception>`).description(what).requiredOption("--note <text>", "why, for the books"),
      async (tool, [id = ""], { note = "" }) => {
        const value = need(await bookException(tool, { id: exceptionId(id), as, note }));
        await tool.record(`ledger ${name}`, id);
        return { value };
      },
    );
  runs(
    ledger
      .command("correct")
      .description("book an entry by hand; nothing that is booked is ever changed")
      .requiredOption(
        "--reference <text>",
        "its number in your tracker; repeating the command with it books nothing more",
      )
      .requiredOption("--debit <account>", "for example treasury")
      .requiredOption("--credit <account>", "for example operator_capital")
      .requiredOption("--asset <caip19>", "in which asset")
      .requiredOption("--amount <value>", "minor units")
      .requiredOption("--note <text>", "why, for the books"),
    async (tool, _args, { reference = "", debit = "", credit = "", asset = "", amount = "", note = "" }) => {
      if (!/^[1-9]\d{0,77}$/.test(amount)) throw new UsageError("--amount: expected minor units");
      if (!/^[!-~]{1,100}$/.test(reference))
        throw new UsageError("--reference: expected 1 to 100 printable ASCII characters without spaces");
      const value = need(await correctLedger(tool, { reference, debit, credit, asset, amount: BigInt(amount), note }));
      if (!value.repeated) await tool.record("ledger correct", reference);
      return { value };
    },
  );
}

/** What a merchant was owed, day by day. */
function addStatementCommand(program: Command, runs: Runs): void {
  const day = (text: string) => {
    if (!isDay(text)) throw new InvalidArgumentError("expected a date such as 2026-03-31");
    return text;
  };
  runs(
    program
      .command("statement <merchant>")
      .description(
        "payments, fees, payouts and refunds of a merchant, with opening and closing balance, in minor units",
      )
      .requiredOption("--from <date>", "the first day, UTC", day)
      .requiredOption("--until <date>", "the last day", day)
      .option("--format <format>", "csv, or a table", oneOf("csv", "table"), "table")
      .addHelpText(
        "after",
        "\nExample:\n  npm run admin -- statement mrch_… --from 2026-03-01 --until 2026-03-31 --format csv",
      ),
    async (tool, [merchantId = ""], { from = "", until = "", format }) => {
      if (!(await findMerchantOwner(tool, merchantId))) throw new RefusedError(`there is no merchant ${merchantId}`);
      if (from > until) throw new UsageError("--until: is before --from");
      const value = await readStatements(tool, { merchantId, from, until });
      if (format === "csv") return { value, lines: toCsv(value) };
      const lines = value.flatMap(({ lines, ...head }) => ["", ...describe(head), "", ...describe(lines)]);
      return { value, lines: lines.length > 0 ? lines.slice(1) : ["none"] };
    },
  );
}

/** A date that there is, YYYY-MM-DD. */
function isDay(text: string): boolean {
  const at = new Date(`${text}T00:00:00Z`);
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(text);
}

/** What the operator takes of payments. */
function addFeeCommands(program: Command, runs: Runs): void {
  const fees = program.command("fees").description("what is taken of payments; nothing unless it is set");
  runs(
    fees.command("list").description("every policy; a merchant's own counts instead of its account's"),
    async (tool) => {
      const value = (await listFees(tool)).map(({ account_id, merchant_id, points, fixed_micros }) => ({
        ...{ account: account_id, merchant: merchant_id },
        ...{ percent: points / 100, fixed: toDecimal(fixed_micros, 6) },
      }));
      return { value };
    },
  );
  const whose = (command: Command) =>
    command
      .requiredOption("--account <id>", "of an account's merchants")
      .option("--merchant <id>", "of this one of them alone");
  runs(
    whose(fees.command("set").description("take a percentage, a fixed amount, or both, of payments from now on"))
      .option("--percent <number>", "for example 1.5; at most two decimals", "0")
      .option("--fixed <number>", "units of the asset, for example 0.10; at most six decimals", "0"),
    async (tool, _args, { account = "", merchant, percent = "", fixed = "" }) => {
      if (!/^\d{1,3}(\.\d{1,2})?$/.test(percent) || Number(percent) > 100)
        throw new UsageError("--percent: expected a number from 0 to 100, with at most two decimals");
      if (!/^\d{1,30}(\.\d{1,6})?$/.test(fixed))
        throw new UsageError("--fixed: expected a number with at most six decimals");
      const points = Number(toMinor(percent, 2));
      const owner = await feeOwner(tool, account, merchant);
      await setFee(tool, { ...owner, points, fixedMicros: toMinor(fixed, 6) });
      await tool.record(`fees set ${percent} % and ${fixed}`, merchant ?? account);
      return { value: { account, merchant: merchant ?? null, percent: points / 100, fixed } };
    },
  );
  runs(
    whose(fees.command("clear").description("take a policy away")),
    async (tool, _args, { account = "", merchant }) => {
      const owner = await feeOwner(tool, account, merchant);
      if (!(await clearFee(tool, owner))) throw new RefusedError("there is no such policy");
      await tool.record("fees clear", merchant ?? account);
      return { value: { account, merchant: merchant ?? null, cleared: true } };
    },
  );
}

async function feeOwner(tool: Tool, accountId: string, merchantId: string | undefined) {
  const [account] = await listAccounts(tool, accountId);
  if (!account) throw new RefusedError(`there is no account ${accountId}`);
  if (merchantId === undefined) return { accountId, merchantId: null };
  const owner = await findMerchantOwner(tool, merchantId);
  if (owner?.accountId !== accountId) throw new RefusedError(`account ${accountId} has no merchant ${merchantId}`);
  return { accountId, merchantId };
}

/** A decimal text in its smallest units. */
function toMinor(text: string, decimals: number): bigint {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(decimals, "0"));
}

function addExceptionCommands(program: Command, runs: Runs): void {
  const exceptions = program
    .command("exceptions")
    .description("money that belongs to nobody yet: late, double, of a wrong amount, unknown")
    .option("--limit <number>", "at most so many", wholeNumber, "200");
  runs(exceptions, async (tool, _args, { limit }) => {
    const value = await listExceptions(tool, Number(limit));
    const lines = value.flatMap((one) => ["", ...describe(one as unknown as Record<string, unknown>)]);
    return { value, lines: lines.length > 0 ? lines.slice(1) : ["none"] };
  });
  runs(
    exceptions
      .command("assign <exception>")
      .description("it was for a payment: its merchant gets it, and the payment stays as it is")
      .requiredOption("--payment <payment>", "for which"),
    async (tool, [id = ""], { payment: paymentId = "" }) => {
      const value = need(await assignException(tool, { id: exceptionId(id), paymentId }));
      await tool.record(`exceptions assign ${id}`, paymentId);
      return { value };
    },
  );
  runs(
    exceptions.command("return <exception>").description("send it back to where it came from"),
    async (tool, [id = ""]) => {
      const value = need(await returnException(tool, { id: exceptionId(id) }));
      await tool.record("exceptions return", id);
      return { value };
    },
  );
}

/** Ids are numbers. */
function exceptionId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError("expected the id of an exception, a number");
  return Number(text);
}
