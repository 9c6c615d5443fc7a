import type { Command } from "commander";
import {
  allowWalletCancellation,
  listAccounts,
  setDestinationWait,
} from "../../payments/maintenance/operator-actions.ts";
import { createAccount } from "../../payments/merchants/accounts.ts";
import { createApiKey } from "../../payments/merchants/api-keys.ts";
import { createAppId, listAppIds, revokeApp } from "../../payments/merchants/app-ids.ts";
import { addDestinations } from "../../payments/merchants/destinations.ts";
import { createMerchant } from "../../payments/merchants/merchants.ts";
import { pinVersion } from "../../payments/merchants/pin-version.ts";
import { type AddAction, type Context, oneOf, parseMode, RefusedError, UsageError, unwrap } from "./command.ts";
import { parseScopes, scopesHelp, scopesOption } from "./scope-options.ts";

/** App ids that are listed at most, the newest. */
const APP_IDS = 1_000;

/** Adds the commands for accounts and their app ids. */
export function addAccountCommands(program: Command, addAction: AddAction): void {
  const accounts = program.command("accounts").description("merchant accounts");
  addSetUp(accounts, addAction);
  addAction(
    accounts.command("new").description("create an account").requiredOption("--name <name>", "its name"),
    async (context, _args, { name = "" }) => {
      const { id } = await createAccount(context, { actor: await context.actor(), name });
      return { value: { accountId: id } };
    },
  );
  addAction(accounts.command("list").description("list all accounts, newest first"), async ({ db }) => ({
    value: await listAccounts({ db }),
  }));
  addAction(accounts.command("show <account>").description("show an account"), async (context, [id = ""]) => ({
    value: await requireAccount(context, id),
  }));
  addAction(
    accounts
      .command("pin-version <account>")
      .description("move an account to a newer version of the API")
      .requiredOption("--version <date>", "for example 2026-02-19"),
    async (context, [accountId = ""], { version = "" }) => {
      await requireAccount(context, accountId);
      const pinned = unwrap(await pinVersion(context, { actor: await context.actor(), accountId, version }));
      return { value: { accountId, ...pinned } };
    },
  );
  addAction(
    accounts
      .command("wallet-cancel <account>")
      .argument("<on or off>", "off: only the merchant can cancel", oneOf("on", "off"))
      .description("allow or forbid wallets and checkout pages to cancel the account's payments (default: on)")
      .addHelpText(
        "after",
        "\nOn: the wallet instance or checkout session that requested a payment's options can cancel it, until another one\nrequests them or a confirm is being verified. The merchant's own key can always cancel.",
      ),
    async (context, [accountId = "", text]) => {
      await requireAccount(context, accountId);
      await allowWalletCancellation(context, { actor: await context.actor(), accountId, allow: text === "on" });
      return { value: await requireAccount(context, accountId) };
    },
  );
  addAction(
    accounts
      .command("destination-wait <account>")
      .argument("<hours>", "0 to 720; 0: changes apply at once")
      .description("set how long changes of merchants' destinations wait before they apply (default: 72 hours)")
      .addHelpText(
        "after",
        "\nWithin the period the merchant can notice a change that a thief of an API key requested. Changes that wait already\nkeep their time.",
      ),
    async (context, [accountId = "", text = ""]) => {
      if (!/^\d{1,3}$/.test(text) || Number(text) > 720) throw new UsageError("hours: expected 0 to 720");
      await requireAccount(context, accountId);
      const actor = await context.actor();
      await setDestinationWait(context, { actor, accountId, hours: Number(text) });
      return { value: await requireAccount(context, accountId) };
    },
  );
  addAppCommands(program, addAction);
}

function addAppCommands(program: Command, addAction: AddAction): void {
  const apps = program.command("apps").description("app ids, which are public and for wallets");
  addAction(
    apps
      .command("new")
      .description("create an app id")
      .requiredOption("--account <id>", "the account of the app id")
      .requiredOption("--mode <mode>", "live or test", parseMode),
    async (context, _args, { account = "", mode }) => {
      await requireAccount(context, account);
      const actor = await context.actor();
      const args = { actor, accountId: account, mode: parseMode(mode) };
      return { value: { appId: unwrap(await createAppId(context, args)).id } };
    },
  );
  addAction(
    apps.command("list").description("list the app ids of an account").requiredOption("--account <id>", "the account"),
    async (context, _args, { account = "" }) => {
      await requireAccount(context, account);
      return { value: unwrap(await listAppIds(context, { accountId: account, limit: APP_IDS })).items };
    },
  );
  addAction(apps.command("revoke <app>").description("revoke an app id"), async (context, [id = ""]) => {
    return { value: { id: unwrap(await revokeApp(context, { actor: await context.actor(), id })).id } };
  });
}

/** Returns an account. Throws RefusedError when it does not exist. */
export async function requireAccount({ db }: Pick<Context, "db">, id: string) {
  const [account] = await listAccounts({ db }, id);
  if (!account) throw new RefusedError(`there is no account ${id}`);
  return account;
}

/** Adds the command that creates everything a first payment needs, in one transaction. */
function addSetUp(accounts: Command, addAction: AddAction): void {
  const command = accounts
    .command("set-up")
    .description("create an account with a key, an app id and a merchant at once; the key is shown only once")
    .requiredOption("--name <name>", "name of the account")
    .requiredOption("--merchant <name>", "name of its first merchant")
    .requiredOption("--email <address>", "email address of that merchant")
    .requiredOption(...scopesOption)
    .option("--mode <mode>", "live or test", parseMode, "live")
    .option("--asset <caip19>", "an asset that the merchant is paid in, for example eip155:8453/erc20:0x…")
    .option("--destination <caip10>", "the blockchain account that receives payouts of the asset, on the same chain")
    .addHelpText(
      "after",
      `${scopesHelp}\n\nExample:\n  npm run admin -- accounts set-up --name Shop --merchant Corner --email me@example.com --mode test \\\n    --scopes payments:read,payments:write,refunds`,
    );
  addAction(command, async (context, _args, options) => {
    const { name = "", merchant = "", email = "", mode, asset, destination } = options;
    const scopes = parseScopes(options["scopes"] ?? "");
    if ((asset === undefined) !== (destination === undefined))
      throw new UsageError("--asset and --destination require each other");
    const actor = await context.actor();
    const created = await context.db.transaction().execute(async (db) => {
      const deps = { db, now: context.now, log: context.log };
      const { id: accountId } = await createAccount(deps, { actor, name });
      const owner = { actor, accountId, mode: parseMode(mode) };
      const { id: merchantId } = await createMerchant(deps, { ...owner, name: merchant, email });
      if (asset !== undefined && destination !== undefined)
        unwrap(await addDestinations(deps, { ...owner, merchantId, settlements: [{ asset, destination }] }));
      const { id: appId } = unwrap(await createAppId(deps, owner));
      const { key } = unwrap(await createApiKey(deps, { ...owner, scopes }));
      return { accountId, mode: owner.mode, merchantId, apiKey: key, appId };
    });
    return { value: created };
  });
}
