import type { Command } from "commander";
import { setWalletsCancel } from "../../db/requesters.ts";
import type { Mode } from "../../db/tables.ts";
import { createAccount, createApiKey, createAppId, type Scope } from "../../payments/accounts.ts";
import { addDestinations } from "../../payments/destinations.ts";
import { createMerchant } from "../../payments/merchants.ts";
import { listAccounts, listApps, listKeys, revoke } from "../../payments/operators.ts";
import { pinVersion } from "../../payments/versions.ts";
import { need, oneOf, RefusedError, type Runs, type Tool, UsageError } from "./tool.ts";

const mode = oneOf("live", "test");

/** Accounts, and what lets callers in: keys and app ids. */
export function addAccountCommands(program: Command, runs: Runs): void {
  addNewAccount(program, runs);
  const accounts = program.command("accounts").description("merchant accounts");
  runs(
    accounts.command("new").description("make an account").requiredOption("--name <name>", "what people call it"),
    async (tool, _args, { name = "" }) => {
      const { id } = await createAccount(tool, { name });
      await tool.record("accounts new", id);
      return { value: { accountId: id } };
    },
  );
  runs(accounts.command("list").description("all accounts, the newest first"), async ({ db }) => ({
    value: await listAccounts({ db }),
  }));
  runs(accounts.command("show <account>").description("one account"), async (tool, [id = ""]) => ({
    value: await needAccount(tool, id),
  }));
  runs(
    accounts
      .command("pin <account>")
      .description("move an account to a newer version of the contract")
      .requiredOption("--version <date>", "for example 2026-02-19"),
    async (tool, [accountId = ""], { version = "" }) => {
      await needAccount(tool, accountId);
      const pinned = need(await pinVersion(tool, { accountId, version }));
      await tool.record("accounts pin", accountId);
      return { value: { accountId, ...pinned } };
    },
  );
  runs(
    accounts
      .command("wallet-cancel <account>")
      .argument("<on or off>", "off: only the merchant cancels", oneOf("on", "off"))
      .description("let wallets and checkout pages cancel the account's payments, or not; on unless it is set")
      .addHelpText(
        "after",
        "\nOn: the one wallet instance, or checkout session, that has requested a payment's options may cancel it, until\nanother one requests them or a confirm is being verified. The merchant's own key may always.",
      ),
    async (tool, [accountId = "", text]) => {
      await needAccount(tool, accountId);
      await setWalletsCancel(tool.db, { accountId, allow: text === "on" });
      await tool.record(`accounts wallet-cancel ${text}`, accountId);
      return { value: await needAccount(tool, accountId) };
    },
  );
  addKeyCommands(program, runs);
}

function addKeyCommands(program: Command, runs: Runs): void {
  const keys = program.command("keys").description("API keys: secret, for servers");
  runs(
    keys
      .command("new")
      .description("make a key; it is shown this once")
      .requiredOption("--account <id>", "whose key")
      .requiredOption("--mode <mode>", "live or test", mode)
      .option("--scopes <list>", "gateway, merchant, or both by a comma", "gateway,merchant"),
    async (tool, _args, { account = "", mode, scopes = "" }) => {
      await needAccount(tool, account);
      const wanted = scopes.split(",");
      if (!wanted.every((scope) => scope === "gateway" || scope === "merchant"))
        throw new UsageError("--scopes: expected gateway, merchant, or both by a comma");
      const made = await createApiKey(tool, { accountId: account, mode: mode as Mode, scopes: wanted as Scope[] });
      await tool.record("keys new", made.id);
      return { value: { keyId: made.id, apiKey: made.key } };
    },
  );
  runs(
    keys
      .command("list")
      .description("keys of an account, by their last characters")
      .requiredOption("--account <id>", "whose keys"),
    async (tool, _args, { account = "" }) => {
      await needAccount(tool, account);
      return { value: await listKeys(tool, account) };
    },
  );
  runs(keys.command("revoke <key>").description("let nobody in with it any more"), async (tool, [id = ""]) => {
    const value = need(await revoke(tool, "api_key", id));
    await tool.record("keys revoke", id);
    return { value };
  });
  const apps = program.command("apps").description("app ids: public, for wallets");
  runs(
    apps
      .command("new")
      .description("make an app id")
      .requiredOption("--account <id>", "whose app")
      .requiredOption("--mode <mode>", "live or test", mode),
    async (tool, _args, { account = "", mode }) => {
      await needAccount(tool, account);
      const value = await createAppId(tool, { accountId: account, mode: mode as Mode });
      await tool.record("apps new", value.appId);
      return { value };
    },
  );
  runs(
    apps.command("list").description("app ids of an account").requiredOption("--account <id>", "whose apps"),
    async (tool, _args, { account = "" }) => {
      await needAccount(tool, account);
      return { value: await listApps(tool, account) };
    },
  );
  runs(apps.command("revoke <app>").description("let no wallet in with it any more"), async (tool, [id = ""]) => {
    const value = need(await revoke(tool, "app_id", id));
    await tool.record("apps revoke", id);
    return { value };
  });
}

/** An account, or a refusal that names it. */
export async function needAccount({ db }: Pick<Tool, "db">, id: string) {
  const [account] = await listAccounts({ db }, id);
  if (!account) throw new RefusedError(`there is no account ${id}`);
  return account;
}

/** All that a first payment needs, or nothing of it. */
function addNewAccount(program: Command, runs: Runs): void {
  const command = program
    .command("new-account")
    .description("an account with a key, an app id and a merchant, all at once; the key is shown this once")
    .requiredOption("--name <name>", "of the account")
    .requiredOption("--merchant <name>", "of its first merchant")
    .requiredOption("--email <address>", "of that merchant")
    .option("--mode <mode>", "live or test", mode, "live")
    .option("--asset <caip19>", "an asset the merchant is paid in, for example eip155:8453/erc20:0x…")
    .option("--destination <caip10>", "and the account it is paid out to, on the same chain")
    .addHelpText(
      "after",
      "\nExample:\n  npm run admin -- new-account --name Shop --merchant Corner --email me@example.com --mode test",
    );
  runs(command, async (tool, _args, { name = "", merchant = "", email = "", mode, asset, destination }) => {
    if ((asset === undefined) !== (destination === undefined))
      throw new UsageError("--asset and --destination go together");
    const made = await tool.db.transaction().execute(async (db) => {
      const deps = { db, now: tool.now };
      const { id: accountId } = await createAccount(deps, { name });
      const owner = { accountId, mode: mode as Mode };
      const { id: merchantId } = await createMerchant(deps, { ...owner, name: merchant, email });
      if (asset !== undefined && destination !== undefined)
        need(await addDestinations(deps, { ...owner, merchantId, settlements: [{ asset, destination }] }));
      const { key } = await createApiKey(deps, { ...owner, scopes: ["gateway", "merchant"] });
      const { appId } = await createAppId(deps, owner);
      return { ...owner, merchantId, apiKey: key, appId };
    });
    await tool.record("new-account", made.accountId);
    return { value: made, lines: [JSON.stringify(made, null, 2)] };
  });
}
