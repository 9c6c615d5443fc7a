import { openDb } from "../db/open.ts";
import { createAccount } from "../payments/merchants/accounts.ts";
import { createApiKey } from "../payments/merchants/api-keys.ts";
import { createAppId } from "../payments/merchants/app-ids.ts";
import { addDestinations } from "../payments/merchants/destinations.ts";
import { createMerchant } from "../payments/merchants/merchants.ts";
import { createLog } from "../runtime/log.ts";

export type Caller = { apiKey: string; appId: string; merchantId: string };
export type Seeded = { live: Caller; test: Caller };

/** The scopes of the local stack's keys: everything but approvals, which a second person gives. */
const scopes = [
  "gateway",
  "payments:read",
  "payments:write",
  "refunds",
  "merchants",
  "settlements",
  "webhooks",
  "keys",
] as const;

/** Creates an account with a merchant, its payout destinations and one key, in live mode and in test mode. */
export async function seedAccount(
  databaseUrl: string,
  ...settlements: { asset: string; destination: string }[]
): Promise<Seeded> {
  const db = openDb(databaseUrl, { max: 2, applicationName: "pay-seed" });
  const deps = { db, now: () => new Date(), log: createLog({ level: "silent", role: "seed" }) };
  const actor = { kind: "operator", id: "local stack", address: null } as const;
  try {
    const { id: accountId } = await createAccount(deps, { actor, name: "Local account", destinationWaitingHours: 0 });
    const seedMode = async (mode: "live" | "test"): Promise<Caller> => {
      const issued = await createApiKey(deps, { actor, accountId, mode, scopes });
      if (!issued.ok) throw new Error(`the API key was refused: ${issued.message}`);
      const app = await createAppId(deps, { actor, accountId, mode });
      if (!app.ok) throw new Error(`the app id was refused: ${app.message}`);
      const details = { name: "Corner shop", email: "owner@example.com" };
      const { id: merchantId } = await createMerchant(deps, { actor, accountId, mode, ...details });
      const added = await addDestinations(deps, { actor, accountId, mode, merchantId, settlements });
      if (!added.ok) throw new Error(`the settlement destination was refused: ${added.message}`);
      return { apiKey: issued.value.key, appId: app.value.id, merchantId };
    };
    return { live: await seedMode("live"), test: await seedMode("test") };
  } finally {
    await db.destroy();
  }
}
