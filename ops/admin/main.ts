import { parseArgs } from "node:util";
import { openDb } from "../../db/open.ts";
import { createAccount, createApiKey, createAppId } from "../../payments/accounts.ts";
import { addDestinations } from "../../payments/destinations.ts";
import { createMerchant } from "../../payments/merchants.ts";
import { ConfigError, readMigrateConfig } from "../config.ts";
import { describeBriefly } from "../redaction.ts";

const help = `usage: npm run admin -- new-account --name NAME --merchant NAME --email ADDRESS [options]

Makes an account with an API key, an app id and a merchant, and prints them as JSON. The key is shown this once.

  --mode live|test           (default live)
  --asset CAIP19             an asset the merchant is paid in, for example eip155:8453/erc20:0x…
  --destination CAIP10       and the account it is paid out to, on the same chain
  --help                     this text

DATABASE_URL says which database.`;

/** A wrong call, said in one sentence. */
class UsageError extends Error {
  override readonly name = "UsageError";
}

async function makeAccount(args: Record<string, string | undefined>): Promise<object> {
  const { name, merchant: merchantName, email, mode, asset, destination } = args;
  if (!name || !merchantName || !email) throw new UsageError("--name, --merchant and --email are needed");
  if (mode !== "live" && mode !== "test") throw new UsageError("--mode is live or test");
  if ((asset === undefined) !== (destination === undefined))
    throw new UsageError("--asset and --destination go together");
  const db = openDb(readMigrateConfig(process.env).DATABASE_URL, { max: 1, applicationName: "pay-admin" });
  try {
    // All of it or nothing: a wrong destination leaves no account behind.
    return await db.transaction().execute(async (trx) => {
      const deps = { db: trx, now: () => new Date() };
      const { id: accountId } = await createAccount(deps, { name });
      const { id: merchantId } = await createMerchant(deps, { accountId, mode, name: merchantName, email });
      if (asset !== undefined && destination !== undefined) {
        const added = await addDestinations(deps, {
          accountId,
          mode,
          merchantId,
          settlements: [{ asset, destination }],
        });
        if (!added.ok) throw new UsageError(added.message);
      }
      const { key } = await createApiKey(deps, { accountId, mode, scopes: ["gateway", "merchant"] });
      const { appId } = await createAppId(deps, { accountId, mode });
      return { accountId, mode, merchantId, apiKey: key, appId };
    });
  } finally {
    await db.destroy();
  }
}

const text = { type: "string" } as const;
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...{ name: text, merchant: text, email: text, asset: text, destination: text },
      mode: { type: "string", default: "live" },
      help: { type: "boolean", default: false },
    },
  });
  const { help: wanted, ...args } = values;
  if (wanted || positionals[0] !== "new-account") {
    console.log(help);
    process.exitCode = wanted ? 0 : 2;
  } else console.log(JSON.stringify(await makeAccount(args), null, 2));
} catch (error) {
  const said = error instanceof ConfigError || error instanceof UsageError || error instanceof TypeError;
  console.error(said ? (error as Error).message : describeBriefly(error));
  process.exitCode = said ? 2 : 1;
}
