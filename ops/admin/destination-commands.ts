import type { Command } from "commander";
import { addDestinations, changeDestination, deleteDestination } from "../../payments/merchants/destinations.ts";
import { setAcceptsOtherAssets, setDirectPayment, setPayoutSchedule } from "../../payments/payouts/payout-policies.ts";
import { readNetworks } from "../../runtime/networks/read-networks.ts";
import { type AddAction, UsageError, unwrap, wholeNumber } from "./command.ts";
import { addDestinationChangeCommands } from "./destination-change-commands.ts";
import { requireMerchantToChange } from "./require-merchant.ts";

/** Adds the commands for the destinations that merchants are paid at. */
export function addDestinationCommands(program: Command, addAction: AddAction): void {
  const destinations = program
    .command("destinations")
    .description("blockchain accounts that receive the payouts of a merchant");
  addReceiverCommands(destinations, addAction);
  addScheduleCommands(destinations, addAction);
  addPaymentModeCommands(destinations, addAction);
  addDestinationChangeCommands(destinations, addAction);
}

/** Adds the commands that add, change and remove the account that is paid. */
function addReceiverCommands(destinations: Command, addAction: AddAction): void {
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

/** Adds the commands that choose whether payments accumulate. */
function addScheduleCommands(destinations: Command, addAction: AddAction): void {
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
        amount: readMinorUnits("--amount", amount),
        minimum: readMinorUnits("--minimum", minimum),
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
}

/** Adds the commands that choose whom buyers pay, and in which assets. */
function addPaymentModeCommands(destinations: Command, addAction: AddAction): void {
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
}

/** Returns an option's amount in minor units, or undefined without the option. Throws UsageError. */
function readMinorUnits(name: string, text: string | undefined): bigint | undefined {
  if (text !== undefined && !/^[1-9]\d{0,77}$/.test(text)) throw new UsageError(`${name}: expected minor units`);
  return text === undefined ? undefined : BigInt(text);
}
