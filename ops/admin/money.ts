import type { Command } from "commander";
import { correctLedger, readBalances } from "../../payments/corrections.ts";
import {
  adoptException,
  assignException,
  bookException,
  listExceptions,
  returnException,
} from "../../payments/exceptions.ts";
import { describe, need, runs, UsageError, wholeNumber } from "./tool.ts";

/** Money that belongs to nobody yet, and the books. */
export function addMoneyCommands(program: Command): void {
  addExceptionCommands(program);
  const ledger = program.command("ledger").description("the books: double entry, in minor units");
  runs(
    ledger
      .command("balances")
      .description("what every account holds; a debit is positive")
      .option("--account <name>", "one account, for example treasury or payable:mrch_…")
      .option("--asset <caip19>", "one asset")
      .option("--day <date>", "at the end of that day, UTC, for example 2026-03-31"),
    async (tool, _args, { account, asset, day }) => {
      if (day !== undefined && (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day))))
        throw new UsageError("--day: expected a date such as 2026-03-31");
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
      .requiredOption("--debit <account>", "for example treasury")
      .requiredOption("--credit <account>", "for example operator_capital")
      .requiredOption("--asset <caip19>", "in which asset")
      .requiredOption("--amount <value>", "minor units")
      .requiredOption("--note <text>", "why, for the books"),
    async (tool, _args, { debit = "", credit = "", asset = "", amount = "", note = "" }) => {
      if (!/^[1-9]\d{0,77}$/.test(amount)) throw new UsageError("--amount: expected minor units");
      const value = need(await correctLedger(tool, { debit, credit, asset, amount: BigInt(amount), note }));
      await tool.record("ledger correct", value.id);
      return { value };
    },
  );
}

function addExceptionCommands(program: Command): void {
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
  runs(
    exceptions
      .command("adopt <exception>")
      .description("it is a transfer of ours, made before the database was restored from a backup"),
    async (tool, [id = ""]) => {
      const value = need(await adoptException(tool, { id: exceptionId(id) }));
      await tool.record("exceptions adopt", id);
      return { value };
    },
  );
}

/** Ids are numbers. */
function exceptionId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError("expected the id of an exception, a number");
  return Number(text);
}
