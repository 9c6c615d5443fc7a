import type { Command } from "commander";
import type { Mode } from "../../db/tables.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../payments/destinations.ts";
import {
  changeMerchant,
  createMerchant,
  findMerchant,
  listMerchants,
  type MerchantStatus,
} from "../../payments/merchants.ts";
import { findMerchantOwner, listDeletedMerchants, readDebt } from "../../payments/operators.ts";
import {
  gatherPayouts,
  holdPayouts,
  listDestinationChanges,
  payDirectly,
  takeOthers,
} from "../../payments/payout-policies.ts";
import { addPolicy, listPolicies, removePolicy } from "../../payments/policies.ts";
import { readNetworks } from "../networks.ts";
import { need, oneOf, RefusedError, type Runs, show, type Tool, UsageError, wholeNumber } from "./tool.ts";

const mode = oneOf("live", "test");

/** Merchants, where they are paid, and whom they have to ask for data. */
export function addMerchantCommands(program: Command, runs: Runs): void {
  const merchants = program.command("merchants").description("those who receive payments");
  runs(
    merchants
      .command("new")
      .description("make a merchant")
      .requiredOption("--account <id>", "whose merchant")
      .requiredOption("--mode <mode>", "live or test", mode)
      .requiredOption("--name <name>", "as buyers see it")
      .requiredOption("--email <address>", "of the merchant"),
    async (tool, _args, { account = "", mode, name = "", email = "" }) => {
      const { id } = await createMerchant(tool, { accountId: account, mode: mode as Mode, name, email });
      await tool.record("merchants new", id);
      return { value: { merchantId: id } };
    },
  );
  runs(
    merchants
      .command("list")
      .description("merchants of an account and mode")
      .requiredOption("--account <id>", "whose merchants")
      .requiredOption("--mode <mode>", "live or test", mode)
      .option("--deleted", "those that were deleted, with what each is still owed")
      .addHelpText("after", "\nA deleted merchant is still paid what it is owed; every command here reaches it."),
    async (tool, _args, { account = "", mode, deleted }) => {
      const asked = { accountId: account, mode: mode as Mode, limit: 1_000 };
      if (deleted) return { value: await listDeletedMerchants(tool, asked) };
      const listed = need(await listMerchants(tool, asked));
      return { value: listed.items };
    },
  );
  runs(
    merchants.command("show <merchant>").description("a merchant, and where it is paid"),
    async (tool, [id = ""]) => {
      const asked = await own(tool, id);
      const merchant = need(await findMerchant(tool, asked));
      const settlements = need(await listDestinations(tool, asked));
      const policies = await listPolicies(tool, id);
      const { deletedAt = null, owed = [] } = (await readDebt(tool, id)) ?? {};
      const lines = Object.entries({ ...merchant, deletedAt }).map(
        ([name, value]) => `${name.padEnd(12)}${show(value)}`,
      );
      const paid = settlements.map(({ id, asset, destination }) => `paid in     ${asset} to ${destination} (${id})`);
      const asks = policies.map(
        ({ id, asset, unit, minimum }) =>
          `asks        for data: ${asset ?? "any asset"}, ${unit ? `from ${minimum} ${unit}` : "any amount"} (${id})`,
      );
      const owes = owed.map(({ asset, amount }) => `owed        ${amount} of ${asset}`);
      const value = { ...merchant, deletedAt, settlements, policies, owed };
      return { value, lines: [...lines, ...paid, ...owes, ...asks] };
    },
  );
  runs(
    merchants
      .command("set-status <merchant>")
      .argument(
        "<status>",
        "active, inactive or suspended: only an active one makes payments",
        oneOf("active", "inactive", "suspended"),
      )
      .description("let a merchant make payments, or not"),
    async (tool, [id = "", text]) => {
      const status = text as MerchantStatus;
      const value = need(await changeMerchant(tool, { ...(await own(tool, id)), status }));
      await tool.record(`merchants set-status ${status}`, id);
      return { value };
    },
  );
  for (const [name, hold, what] of [
    ["hold", true, "pay nothing out to a merchant until it is released; what is owed stays owed"],
    ["release", false, "pay a merchant out again"],
  ] as const)
    runs(merchants.command(`${name} <merchant>`).description(what), async (tool, [id = ""]) => {
      const value = need(await holdPayouts(tool, { ...(await own(tool, id)), hold }));
      await tool.record(`merchants ${name}`, id);
      return { value };
    });
  addDestinationCommands(program, runs);
  addPolicyCommands(program, runs);
}

function addDestinationCommands(program: Command, runs: Runs): void {
  const destinations = program.command("destinations").description("where a merchant is paid out to");
  runs(
    destinations
      .command("add <merchant>")
      .description("pay a merchant in an asset")
      .requiredOption("--asset <caip19>", "for example eip155:8453/erc20:0x…")
      .requiredOption("--to <caip10>", "an account on the same chain"),
    async (tool, [id = ""], { asset = "", to: destination = "" }) => {
      const asked = { ...(await own(tool, id)), settlements: [{ asset, destination }] };
      const [value] = await tool.db
        .transaction()
        .execute(async (db) => need(await addDestinations({ ...tool, db }, asked)));
      await tool.record("destinations add", id);
      return { value };
    },
  );
  const log = { info: () => undefined } as never;
  runs(
    destinations
      .command("change <merchant> <destination>")
      .description("for payouts made from now on")
      .requiredOption("--to <caip10>", "the new account"),
    async (tool, [merchant = "", id = ""], { to: destination = "" }) => {
      const value = need(
        await changeDestination({ ...tool, log }, { ...(await own(tool, merchant)), id, destination }),
      );
      await tool.record(`destinations change ${id}`, merchant);
      return { value };
    },
  );
  runs(
    destinations
      .command("gather <merchant> <destination>")
      .description("pay out what several payments owe in one transfer, instead of each at once")
      .option("--seconds <number>", "so long after the first of them", wholeNumber, "600")
      .option("--amount <value>", "or when they come to so much, in minor units (usually 1,000 units of the asset)")
      .option("--minimum <value>", "and not before they come to so much, in minor units")
      .addHelpText(
        "after",
        "\nGo back to paying at once:\n  npm run admin -- destinations at-once <merchant> <destination>",
      ),
    async (tool, [merchantId = "", id = ""], { seconds, amount, minimum }) => {
      const gather = {
        ms: Number(seconds) * 1_000,
        amount: minorUnits("--amount", amount),
        minimum: minorUnits("--minimum", minimum),
      };
      const networks = amount === undefined ? readNetworks(tool.networksFile()) : undefined;
      const deps = { ...tool, ...(networks ? { networks } : {}) };
      const value = need(await gatherPayouts(deps, { ...(await own(tool, merchantId)), id, gather }));
      await tool.record(`destinations gather ${id}`, merchantId);
      return { value };
    },
  );
  runs(
    destinations.command("at-once <merchant> <destination>").description("pay out each payment as soon as it succeeds"),
    async (tool, [merchantId = "", id = ""]) => {
      const value = need(await gatherPayouts(tool, { ...(await own(tool, merchantId)), id, gather: undefined }));
      await tool.record(`destinations at-once ${id}`, merchantId);
      return { value };
    },
  );
  for (const [name, direct, what] of [
    ["direct", true, "let buyers pay it themselves: confirmed is paid out, without custody, fees or refunds by us"],
    ["through-us", false, "pay it out of what buyers have paid to us"],
  ] as const)
    runs(
      destinations.command(`${name} <merchant> <destination>`).description(what),
      async (tool, [merchantId = "", id = ""]) => {
        const deps = direct ? { ...tool, networks: readNetworks(tool.networksFile()) } : tool;
        const value = need(await payDirectly(deps, { ...(await own(tool, merchantId)), id, direct }));
        await tool.record(`destinations ${name} ${id}`, merchantId);
        return { value };
      },
    );
  for (const [name, take, what] of [
    ["take-others", true, "take payments in other assets of its currency, owed in its own and paid out of our stock"],
    ["take-own", false, "take payments in its own asset only"],
  ] as const)
    runs(
      destinations.command(`${name} <merchant> <destination>`).description(what),
      async (tool, [merchantId = "", id = ""]) => {
        const deps = { ...tool, networks: readNetworks(tool.networksFile()) };
        const value = need(await takeOthers(deps, { ...(await own(tool, merchantId)), id, take }));
        await tool.record(`destinations ${name} ${id}`, merchantId);
        return { value };
      },
    );
  runs(
    destinations.command("history <merchant>").description("where a merchant was paid, from the first day on"),
    async (tool, [merchantId = ""]) => {
      await own(tool, merchantId);
      return { value: await listDestinationChanges(tool, merchantId) };
    },
  );
  runs(
    destinations.command("remove <merchant> <destination>").description("no longer offer the asset to buyers"),
    async (tool, [merchant = "", id = ""]) => {
      const value = need(await deleteDestination({ ...tool, log }, { ...(await own(tool, merchant)), id }));
      await tool.record(`destinations remove ${id}`, merchant);
      return { value };
    },
  );
}

function addPolicyCommands(program: Command, runs: Runs): void {
  const policies = program.command("policies").description("which payments need data of the buyer");
  runs(
    policies
      .command("add <merchant>")
      .description("ask buyers for their data")
      .option("--asset <caip19>", "only when they pay with this")
      .option("--unit <unit>", "only in this unit, for example iso4217/USD, and")
      .option("--minimum <value>", "from this amount on, in minor units"),
    async (tool, [merchantId = ""], { asset, unit, minimum }) => {
      await own(tool, merchantId);
      if ((unit === undefined) !== (minimum === undefined)) throw new UsageError("--unit and --minimum go together");
      if (minimum !== undefined && !/^\d{1,78}$/.test(minimum)) throw new UsageError("--minimum: expected minor units");
      const given = {
        asset: asset ?? null,
        unit: unit ?? null,
        minimum: minimum === undefined ? null : BigInt(minimum),
      };
      const value = await addPolicy(tool, { merchantId, ...given });
      await tool.record("policies add", value.id);
      return { value };
    },
  );
  runs(policies.command("list <merchant>").description("a merchant's policies"), async (tool, [id = ""]) => {
    await own(tool, id);
    return { value: await listPolicies(tool, id) };
  });
  runs(policies.command("remove <policy>").description("ask no more"), async (tool, [id = ""]) => {
    if (!(await removePolicy(tool, id))) throw new RefusedError(`there is no policy ${id}`);
    await tool.record("policies remove", id);
    return { value: { id, removed: true } };
  });
}

/** An amount on the command line. */
function minorUnits(name: string, text: string | undefined): bigint | undefined {
  if (text !== undefined && !/^[1-9]\d{0,77}$/.test(text)) throw new UsageError(`${name}: expected minor units`);
  return text === undefined ? undefined : BigInt(text);
}

async function own(tool: Tool, merchantId: string) {
  const owner = await findMerchantOwner(tool, merchantId);
  if (!owner) throw new RefusedError(`there is no merchant ${merchantId}`);
  return { ...owner, merchantId };
}
