import type { Command } from "commander";
import { createApiKey, revokeApiKey, rotateApiKey } from "../../payments/merchants/api-keys.ts";
import { findApiKey, listKeysOfAccount } from "../../payments/merchants/find-api-keys.ts";
import { requireAccount } from "./account-commands.ts";
import { type AddAction, parseMode, TIMES, time, UsageError, unwrap } from "./command.ts";
import { parseScopes, scopesHelp, scopesOption } from "./scope-options.ts";

/** Adds the commands for API keys. */
export function addKeyCommands(program: Command, addAction: AddAction): void {
  const keys = program.command("api-keys").description("API keys, which are secret and for servers");
  addAction(
    keys
      .command("new")
      .description("create a key; it is shown only once")
      .requiredOption("--account <id>", "the account of the key")
      .requiredOption("--mode <mode>", "live or test", parseMode)
      .requiredOption(...scopesOption)
      .option("--merchants <list>", "only for these merchants, separated by commas (default: all, also later ones)")
      .option("--cidrs <list>", "only from these addresses and CIDR ranges, separated by commas (default: any)")
      .option("--expires <time>", `no longer from this time on (${TIMES}; default: works until it is revoked)`, time)
      .addHelpText("after", scopesHelp),
    async (context, _args, { account = "", mode, scopes = "", merchants, cidrs, expires }) => {
      await requireAccount(context, account);
      const wanted = {
        actor: await context.actor(),
        accountId: account,
        mode: parseMode(mode),
        scopes: parseScopes(scopes),
        onlyMerchants: merchants?.split(",") ?? null,
        allowedCidrs: cidrs?.split(",") ?? null,
        expiresAt: expires === undefined ? null : new Date(expires),
      };
      const { apiKey, key } = unwrap(await createApiKey(context, wanted));
      return { value: { keyId: apiKey.id, apiKey: key } };
    },
  );
  addAction(
    keys
      .command("list")
      .description("list the keys of an account by their last characters, newest first")
      .requiredOption("--account <id>", "the account"),
    async (context, _args, { account = "" }) => {
      await requireAccount(context, account);
      const listed = await listKeysOfAccount(context, account);
      const value = listed.map(({ id, mode, hint, scopes, previousUntil, expiresAt, revokedAt, lastUsedAt }) => {
        return { id, mode, hint, scopes: scopes.join(","), previousUntil, expiresAt, revokedAt, lastUsedAt };
      });
      return { value };
    },
  );
  addAction(
    keys.command("show <key>").description("show a key: its limits, its creator and its last use"),
    async (context, [id = ""]) => ({ value: unwrap(await findApiKey(context, { id })) }),
  );
  addAction(
    keys
      .command("rotate <key>")
      .description(
        "replace a key's secret, which is shown only once; the former one works for one more day; refused while it does",
      )
      .option("--until <time>", `until when the former secret works, at most 30 days (${TIMES})`, time)
      .option("--now", "end every former secret at once"),
    async (context, [id = ""], { until, now }) => {
      if (until !== undefined && now !== undefined) throw new UsageError("--until and --now exclude each other");
      const actor = await context.actor();
      const wanted = until === undefined ? undefined : new Date(until);
      if (wanted && wanted <= context.now())
        throw new UsageError("--until: is in the past; --now ends every former secret at once");
      const previousUntil = now === undefined ? wanted : context.now();
      const keepsFormer = now === undefined;
      const rotated = await rotateApiKey(context, { actor, id, previousUntil, keepsFormer });
      const { apiKey, key } = unwrap(rotated);
      return { value: { keyId: apiKey.id, apiKey: key, formerWorksUntil: apiKey.previousUntil } };
    },
  );
  addAction(
    keys
      .command("revoke <key>")
      .description("revoke a key at once")
      .option("--with-created", "also every key that it created or rotated over the API"),
    async (context, [id = ""], { withCreated }) => {
      const args = { actor: await context.actor(), id, withCreated: withCreated !== undefined };
      const { revoked } = unwrap(await revokeApiKey(context, args));
      return { value: { id, revoked } };
    },
  );
}
