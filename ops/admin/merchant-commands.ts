import type { Command } from "commander";
import { findPayoutHolds } from "../../db/queries/merchants.ts";
import { listPolicies } from "../../payments/buyer-data/collection-policies.ts";
import { listDeletedMerchants, readDebt } from "../../payments/maintenance/operator-actions.ts";
import { listDestinations } from "../../payments/merchants/destinations.ts";
import { changeMerchant, createMerchant, findMerchant, listMerchants } from "../../payments/merchants/merchants.ts";
import { holdPayouts } from "../../payments/payouts/payout-policies.ts";
import { requireAccount } from "./account-commands.ts";
import { type AddAction, oneOf, parseMode, show, unwrap } from "./command.ts";
import { addStatementCommand } from "./merchant-statement-command.ts";
import { requireMerchant, requireMerchantToChange } from "./require-merchant.ts";

const parseStatus = oneOf("active", "inactive", "suspended");

/** Adds the commands for merchants. */
export function addMerchantCommands(program: Command, addAction: AddAction): void {
  const merchants = program.command("merchants").description("merchants, who receive payments");
  addStatementCommand(merchants, addAction);
  addAction(
    merchants
      .command("new")
      .description("create a merchant")
      .requiredOption("--account <id>", "the account of the merchant")
      .requiredOption("--mode <mode>", "live or test", parseMode)
      .requiredOption("--name <name>", "the name that buyers see")
      .requiredOption("--email <address>", "email address of the merchant"),
    async (context, _args, { account = "", mode, name = "", email = "" }) => {
      await requireAccount(context, account);
      const owner = { actor: await context.actor(), accountId: account, mode: parseMode(mode) };
      const { id } = await createMerchant(context, { ...owner, name, email });
      return { value: { merchantId: id } };
    },
  );
  addAction(
    merchants
      .command("list")
      .description("list the merchants of an account and mode")
      .requiredOption("--account <id>", "the account")
      .requiredOption("--mode <mode>", "live or test", parseMode)
      .option("--deleted", "list deleted merchants, with the amounts that they are still owed")
      .addHelpText("after", "\nA deleted merchant is still paid what it is owed, and every command here accepts it."),
    async (context, _args, { account = "", mode, deleted }) => {
      await requireAccount(context, account);
      const query = { accountId: account, mode: parseMode(mode), limit: 1_000 };
      if (deleted) return { value: await listDeletedMerchants(context, query) };
      const listed = unwrap(await listMerchants(context, query));
      const holds = await findPayoutHolds(
        context.db,
        listed.items.map(({ id }) => id),
      );
      return { value: listed.items.map((one) => ({ ...one, payoutsHeldSince: holds.get(one.id) ?? null })) };
    },
  );
  addAction(
    merchants.command("show <merchant>").description("show a merchant, its destinations and its policies"),
    async (context, [id = ""]) => {
      const owner = await requireMerchant(context, id);
      const merchant = unwrap(await findMerchant(context, owner));
      const settlements = unwrap(await listDestinations(context, owner));
      const policies = await listPolicies(context, id);
      const { deletedAt = null, payoutsHeldSince = null, owed = [] } = (await readDebt(context, id)) ?? {};
      const shown = { ...merchant, deletedAt, ...(payoutsHeldSince && { "payouts held since": payoutsHeldSince }) };
      const lines = Object.entries(shown).map(([name, value]) => `${name.padEnd(12)} ${show(value)}`);
      const paid = settlements.map(
        ({ id, asset, destination, pendingChange: change }) =>
          `paid in      ${asset} to ${destination} (${id})${change ? `, from ${show(change.appliesAt)} to ${change.destination} (${change.changeId})` : ""}`,
      );
      const asks = policies.map(
        ({ id, asset, unit, minimum }) =>
          `asks         for data: ${asset ?? "any asset"}, ${unit ? `from ${minimum} ${unit}` : "any amount"} (${id})`,
      );
      const owedLines = context
        .readable(owed)
        .map(({ asset, amount, inTransit }) => `owed         ${amount} of ${asset}, and ${inTransit} in transit`);
      const value = { ...merchant, deletedAt, payoutsHeldSince, settlements, policies, owed };
      return { value, lines: [...lines, ...paid, ...owedLines, ...asks] };
    },
  );
  addAction(
    merchants
      .command("set-status <merchant>")
      .argument("<status>", "active, inactive or suspended; only an active merchant can create payments", parseStatus)
      .description("set whether a merchant can create payments"),
    async (context, [id = "", text]) => {
      const status = parseStatus(text);
      const value = unwrap(await changeMerchant(context, { ...(await requireMerchantToChange(context, id)), status }));
      return { value };
    },
  );
  for (const [name, hold, what] of [
    ["hold", true, "stop payouts to a merchant until it is released; it stays owed. Refused while they are held"],
    ["release", false, "resume payouts to a merchant"],
  ] as const)
    addAction(merchants.command(`${name} <merchant>`).description(what), async (context, [id = ""]) => {
      const value = unwrap(await holdPayouts(context, { ...(await requireMerchantToChange(context, id)), hold }));
      return { value };
    });
}
