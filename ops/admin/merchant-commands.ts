import type { Command } from "commander";
import { findPayoutHolds } from "../../db/queries/merchants.ts";
import { addPolicy, listPolicies, removePolicy } from "../../payments/buyer-data/collection-policies.ts";
import { findMerchantOwner, listDeletedMerchants, readDebt } from "../../payments/maintenance/operator-actions.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../payments/merchants/destinations.ts";
import { changeMerchant, createMerchant, findMerchant, listMerchants } from "../../payments/merchants/merchants.ts";
import {
  holdPayouts,
  setAcceptsOtherAssets,
  setDirectPayment,
  setPayoutSchedule,
} from "../../payments/payouts/payout-policies.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import {
  type AddAction,
  type Context,
  oneOf,
  parseMode,
  RefusedError,
  show,
  UsageError,
  unwrap,
  wholeNumber,
} from "./command.ts";
import { addDestinationChangeCommands } from "./destination-change-commands.ts";
import { addStatementCommand } from "./merchant-statement-command.ts";

const parseStatus = oneOf("active", "inactive", "suspended");

/** Adds the commands for merchants, their payout destinations and their policies for buyer data. */
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
      const owedLines = context.readable(owed).map(({ asset, amount }) => `owed         ${amount} of ${asset}`);
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
    ["hold", true, "stop payouts to a merchant until it is released; it stays owed"],
    ["release", false, "resume payouts to a merchant"],
  ] as const)
    addAction(merchants.command(`${name} <merchant>`).description(what), async (context, [id = ""]) => {
      const value = unwrap(await holdPayouts(context, { ...(await requireMerchantToChange(context, id)), hold }));
      return { value };
    });
  addDestinationCommands(program, addAction);
  addPolicyCommands(program, addAction);
}

function addDestinationCommands(program: Command, addAction: AddAction): void {
  const destinations = program
    .command("destinations")
    .description("blockchain accounts that receive the payouts of a merchant");
  addAction(
    destinations
      .command("add <merchant>")
      .description("add an asset that a merchant is paid in")
      .requiredOption("--asset <caip19>", "for example eip155:8453/erc20:0x…")
      .requiredOption("--to <caip10>", "an account on the same chain"),
    async (context, [id = ""], { asset = "", to: destination = "" }) => {
      const args = { ...(await requireMerchantToChange(context, id)), settlements: [{ asset, destination }] };
      const [value] = await context.db
        .transaction()
        .execute(async (db) => unwrap(await addDestinations({ ...context, db }, args)));
      return { value };
    },
  );
  addAction(
    destinations
      .command("change <merchant> <destination>")
      .description("change the account that receives payouts, after the account's waiting period")
      .requiredOption("--to <caip10>", "the new account"),
    async (context, [merchant = "", id = ""], { to: destination = "" }) => {
      const value = unwrap(
        await changeDestination(context, { ...(await requireMerchantToChange(context, merchant)), id, destination }),
      );
      return { value };
    },
  );
  addAction(
    destinations
      .command("schedule <merchant> <destination>")
      .description("pay out several payments in one transfer, instead of each one as soon as it succeeds")
      .option("--seconds <number>", "pay out this many seconds after the first payment", wholeNumber, "600")
      .option(
        "--amount <value>",
        "or as soon as the sum reaches this amount, in minor units (default: 1,000 units of the asset)",
      )
      .option("--minimum <value>", "never pay out less than this amount, in minor units")
      .addHelpText(
        "after",
        "\nTo pay out each payment at once again:\n  npm run admin -- destinations pay-immediately <merchant> <destination>",
      ),
    async (context, [merchantId = "", id = ""], { seconds, amount, minimum }) => {
      const schedule = {
        ms: Number(seconds) * 1_000,
        amount: minorUnits("--amount", amount),
        minimum: minorUnits("--minimum", minimum),
      };
      const networks = amount === undefined ? readNetworks(context.networksFile()) : undefined;
      const deps = { ...context, ...(networks ? { networks } : {}) };
      const value = unwrap(
        await setPayoutSchedule(deps, { ...(await requireMerchantToChange(context, merchantId)), id, schedule }),
      );
      return { value };
    },
  );
  addAction(
    destinations
      .command("pay-immediately <merchant> <destination>")
      .description("pay out each payment as soon as it succeeds"),
    async (context, [merchantId = "", id = ""]) => {
      const value = unwrap(
        await setPayoutSchedule(context, {
          ...(await requireMerchantToChange(context, merchantId)),
          id,
          schedule: undefined,
        }),
      );
      return { value };
    },
  );
  for (const [name, direct, what] of [
    ["direct", true, "let buyers pay the destination directly: without custody, fees or refunds by this service"],
    ["custodial", false, "let buyers pay the treasury, and pay the destination out of it"],
  ] as const)
    addAction(
      destinations.command(`${name} <merchant> <destination>`).description(what),
      async (context, [merchantId = "", id = ""]) => {
        const deps = direct ? { ...context, networks: readNetworks(context.networksFile()) } : context;
        const value = unwrap(
          await setDirectPayment(deps, { ...(await requireMerchantToChange(context, merchantId)), id, direct }),
        );
        return { value };
      },
    );
  for (const [name, accept, what] of [
    [
      "accept-other-assets",
      true,
      "accept payments in other assets of its currency, and pay them out in its own asset from the treasury's inventory",
    ],
    ["accept-own-asset", false, "accept payments only in its own asset"],
  ] as const)
    addAction(
      destinations.command(`${name} <merchant> <destination>`).description(what),
      async (context, [merchantId = "", id = ""]) => {
        const deps = { ...context, networks: readNetworks(context.networksFile()) };
        const value = unwrap(
          await setAcceptsOtherAssets(deps, { ...(await requireMerchantToChange(context, merchantId)), id, accept }),
        );
        return { value };
      },
    );
  addDestinationChangeCommands(destinations, addAction);
  addAction(
    destinations
      .command("remove <merchant> <destination>")
      .description("remove a destination; its asset is no longer offered to buyers"),
    async (context, [merchant = "", id = ""]) => {
      const value = unwrap(
        await deleteDestination(context, { ...(await requireMerchantToChange(context, merchant)), id }),
      );
      return { value };
    },
  );
}

function addPolicyCommands(program: Command, addAction: AddAction): void {
  const policies = program.command("policies").description("policies that decide which payments require buyer data");
  addAction(
    policies
      .command("add <merchant>")
      .description("require buyer data for payments")
      .option("--asset <caip19>", "only for payments in this asset")
      .option("--unit <unit>", "only for payments in this unit, for example iso4217/USD; requires --minimum")
      .option("--minimum <value>", "only for payments of this amount or more, in minor units; requires --unit"),
    async (context, [merchantId = ""], { asset, unit, minimum }) => {
      await requireMerchant(context, merchantId);
      if ((unit === undefined) !== (minimum === undefined))
        throw new UsageError("--unit and --minimum require each other");
      if (minimum !== undefined && !/^\d{1,78}$/.test(minimum)) throw new UsageError("--minimum: expected minor units");
      const actor = await context.actor();
      const policy = {
        asset: asset ?? null,
        unit: unit ?? null,
        minimum: minimum === undefined ? null : BigInt(minimum),
      };
      const value = await addPolicy(context, { actor, merchantId, ...policy });
      return { value };
    },
  );
  addAction(
    policies.command("list <merchant>").description("list the policies of a merchant"),
    async (context, [id = ""]) => {
      await requireMerchant(context, id);
      return { value: await listPolicies(context, id) };
    },
  );
  addAction(policies.command("remove <policy>").description("remove a policy"), async (context, [id = ""]) => {
    if (!(await removePolicy(context, { actor: await context.actor(), id })))
      throw new RefusedError(`there is no policy ${id}`);
    return { value: { id, removed: true } };
  });
}

/** Parses an amount of the command line. */
function minorUnits(name: string, text: string | undefined): bigint | undefined {
  if (text !== undefined && !/^[1-9]\d{0,77}$/.test(text)) throw new UsageError(`${name}: expected minor units`);
  return text === undefined ? undefined : BigInt(text);
}

/** Returns a merchant's id with its account and mode. Throws RefusedError when it does not exist. */
async function requireMerchant(context: Context, merchantId: string) {
  const owner = await findMerchantOwner(context, merchantId);
  if (!owner) throw new RefusedError(`there is no merchant ${merchantId}`);
  return { ...owner, merchantId };
}

/** Returns a merchant as `requireMerchant` does, with the operator that changes it. */
async function requireMerchantToChange(context: Context, merchantId: string) {
  return { ...(await requireMerchant(context, merchantId)), actor: await context.actor() };
}
