import type { Command } from "commander";
import { listFeePolicies } from "../../db/queries/fee-policies.ts";
import { correctLedger, readBalances } from "../../payments/accounting/corrections.ts";
import {
  assignException,
  bookException,
  listExceptions,
  returnException,
} from "../../payments/accounting/resolve-exceptions.ts";
import { toDecimal } from "../../payments/lifecycle/list-payments.ts";
import { findMerchantOwner, listAccounts } from "../../payments/maintenance/operator-actions.ts";
import { clearFee, setFee } from "../../payments/merchants/fee-policies.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { type AddAction, type Context, isDay, RefusedError, UsageError, unwrap, wholeNumber } from "./command.ts";

const RETURNED_HELP =
  "\nRefused for money that the chain shows as returned, which a restored database may have forgotten.\nReads NETWORKS_FILE for the deployment's name.";

/** Adds the commands for exceptions, fees and the ledger. */
export function addMoneyCommands(program: Command, addAction: AddAction): void {
  addExceptionCommands(program, addAction);
  addFeeCommands(program, addAction);
  const ledger = program.command("ledger").description("the double-entry ledger");
  addAction(
    ledger
      .command("balances")
      .description("list the balance of every account; a debit balance is positive")
      .option("--account <name>", "only this account, for example treasury or payable:mrch_…")
      .option("--asset <caip19>", "only this asset")
      .option("--day <date>", "balances at the end of this day, UTC, for example 2026-03-31"),
    async (context, _args, { account, asset, day }) => {
      if (day !== undefined && !isDay(day)) throw new UsageError("--day: expected a date such as 2026-03-31");
      return { value: await readBalances(context, { account, asset, day }) };
    },
  );
  for (const [name, as, what] of [
    ["book-capital", "capital", "book an open exception as capital that the operator put in or took out"],
    ["book-cold", "cold", "book an open exception as money that came back from the cold address, or went there"],
    ["book-loss", "losses", "book an open exception as a loss, or as a gain that is kept"],
  ] as const)
    addAction(
      ledger
        .command(`${name} <exception>`)
        .description(what)
        .requiredOption("--note <text>", "the reason, for the ledger")
        .addHelpText("after", RETURNED_HELP),
      async (context, [id = ""], { note = "" }) => {
        const deps = { ...context, networks: readNetworks(context.networksFile()) };
        return {
          value: unwrap(await bookException(deps, { actor: await context.actor(), id: exceptionId(id), as, note })),
        };
      },
    );
  addAction(
    ledger
      .command("correct")
      .description("book a manual entry; existing entries never change")
      .requiredOption(
        "--reference <text>",
        "its number in your tracker; a second command with the same reference has no effect",
      )
      .requiredOption("--debit <account>", "the account to debit, for example treasury")
      .requiredOption("--credit <account>", "the account to credit, for example operator_capital")
      .requiredOption("--asset <caip19>", "the asset of the entry")
      .requiredOption("--amount <value>", "the amount, in minor units")
      .requiredOption("--note <text>", "the reason, for the ledger"),
    async (context, _args, { reference = "", debit = "", credit = "", asset = "", amount = "", note = "" }) => {
      if (!/^[1-9]\d{0,77}$/.test(amount)) throw new UsageError("--amount: expected minor units");
      if (!/^[!-~]{1,100}$/.test(reference))
        throw new UsageError("--reference: expected 1 to 100 printable ASCII characters without spaces");
      const correction = { reference, debit, credit, asset, amount: BigInt(amount), note };
      return { value: unwrap(await correctLedger(context, { actor: await context.actor(), ...correction })) };
    },
  );
}

/** Adds the commands for the fees that the operator charges. */
function addFeeCommands(program: Command, addAction: AddAction): void {
  const fees = program.command("fees").description("fees that are deducted from payments; there are none by default");
  addAction(
    fees.command("list").description("list all fees; a fee of a merchant replaces that of its account"),
    async (context) => {
      const value = (await listFeePolicies(context.db)).map((row) => ({
        account: row.account_id,
        merchant: row.merchant_id,
        percent: row.basis_points / 100,
        fixed: toDecimal(row.fixed_micros, 6),
      }));
      return { value };
    },
  );
  const withOwner = (command: Command) =>
    command
      .requiredOption("--account <id>", "the fee applies to all merchants of this account")
      .option("--merchant <id>", "the fee applies only to this merchant of the account");
  addAction(
    withOwner(fees.command("set").description("charge a percentage, a fixed amount, or both, on payments from now on"))
      .option("--percent <number>", "percentage, for example 1.5; at most two decimals", "0")
      .option("--fixed <number>", "fixed amount in units of the asset, for example 0.10; at most six decimals", "0"),
    async (context, _args, { account = "", merchant, percent = "", fixed = "" }) => {
      if (!/^\d{1,3}(\.\d{1,2})?$/.test(percent) || Number(percent) > 100)
        throw new UsageError("--percent: expected a number from 0 to 100, with at most two decimals");
      if (!/^\d{1,30}(\.\d{1,6})?$/.test(fixed))
        throw new UsageError("--fixed: expected a number with at most six decimals");
      const basisPoints = Number(toMinor(percent, 2));
      const owner = await feeOwner(context, account, merchant);
      await setFee(context, { ...owner, basisPoints, fixedMicros: toMinor(fixed, 6) });
      return { value: { account, merchant: merchant ?? null, percent: basisPoints / 100, fixed } };
    },
  );
  addAction(
    withOwner(fees.command("clear").description("remove a fee")),
    async (context, _args, { account = "", merchant }) => {
      const owner = await feeOwner(context, account, merchant);
      if (!(await clearFee(context, owner))) throw new RefusedError("there is no such fee");
      return { value: { account, merchant: merchant ?? null, cleared: true } };
    },
  );
}

async function feeOwner(context: Context, accountId: string, merchantId: string | undefined) {
  const [account] = await listAccounts(context, accountId);
  if (!account) throw new RefusedError(`there is no account ${accountId}`);
  const actor = await context.actor();
  if (merchantId === undefined) return { actor, accountId, merchantId: null };
  const owner = await findMerchantOwner(context, merchantId);
  if (owner?.accountId !== accountId) throw new RefusedError(`account ${accountId} has no merchant ${merchantId}`);
  return { actor, accountId, merchantId };
}

/** Returns a decimal number in its smallest units. */
function toMinor(text: string, decimals: number): bigint {
  const [whole = "", part = ""] = text.split(".");
  return BigInt(whole + part.padEnd(decimals, "0"));
}

function addExceptionCommands(program: Command, addAction: AddAction): void {
  const exceptions = program
    .command("exceptions")
    .description("money that is not assigned to a payment: late, duplicate, of a wrong amount, or unknown");
  addAction(
    exceptions
      .command("list")
      .description("list open exceptions, oldest first")
      .option("--limit <number>", "most exceptions to list", wholeNumber, "200"),
    async (context, _args, { limit }) => ({ value: await listExceptions(context, Number(limit)) }),
  );
  addAction(
    exceptions
      .command("assign <exception>")
      .description("assign it to a payment: the merchant is credited, and the payment keeps its state")
      .requiredOption("--payment <payment>", "the payment")
      .option("--unnamed", "also money that does not name the payment, which a separate signer may refuse to pay out")
      .addHelpText("after", RETURNED_HELP),
    async (context, [id = ""], { payment: paymentId = "", unnamed }) => {
      const actor = await context.actor();
      const of = { id: exceptionId(id), paymentId, unnamed: unnamed !== undefined };
      const deps = { ...context, networks: readNetworks(context.networksFile()) };
      return { value: unwrap(await assignException(deps, { actor, ...of })) };
    },
  );
  addAction(
    exceptions.command("return <exception>").description("send it back to its sender"),
    async (context, [id = ""]) => {
      const value = unwrap(await returnException(context, { actor: await context.actor(), id: exceptionId(id) }));
      return { value };
    },
  );
}

/** Parses the id of an exception. */
function exceptionId(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError("expected the id of an exception, a number");
  return Number(text);
}
