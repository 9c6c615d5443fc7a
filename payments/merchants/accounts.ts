import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import { insertAccount } from "../../db/queries/accounts.ts";
import { type ApiKeyRow, findLiveApiKey, findLiveAppId, insertApiKey, insertAppId } from "../../db/queries/api-keys.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import type { Mode } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";

export type Scope = ApiKeyRow["scopes"][number];
/** The authenticated caller of a request and what it may do. */
export type Caller = {
  accountId: string;
  mode: Mode;
  scopes: readonly Scope[];
  /** The API key of the request; null for an app id, which every user of the app shares. */
  keyId: string | null;
  /** API version that the account is pinned to. */
  version: string;
};

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * Creates an account.
 * @param args.destinationWaitingHours how long changes of its merchants' destinations wait; 72 by default
 */
export async function createAccount(
  deps: Deps,
  args: { actor: AuditActor; name: string; destinationWaitingHours?: number },
): Promise<{ id: string }> {
  const { actor, name, destinationWaitingHours: hours } = args;
  const id = newId("acct");
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    await insertAccount(db, {
      id,
      name,
      created_at: at,
      ...(hours === undefined ? {} : { destination_waiting_hours: hours }),
    });
    await insertAuditEntries(db, [
      { actor, action: "account.created", subject: id, before: null, after: { name }, at },
    ]);
  });
  return { id };
}

/** Creates an API key. Returns its text and stores only its hash. The prefix names the mode (specification, part 5). */
export async function createApiKey(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; mode: Mode; scopes: readonly Scope[] },
): Promise<{ id: string; key: string }> {
  const id = newId("key");
  // A plain hash is enough: 256 random bits cannot be guessed.
  const key = `${args.mode === "test" ? "svc_test_" : "svc_"}${randomBytes(32).toString("hex")}`;
  const { actor, accountId: account, mode, scopes } = args;
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    await insertApiKey(db, {
      id,
      account_id: account,
      mode,
      hash: hashKey(key),
      hint: key.slice(-4),
      scopes: [...scopes],
      created_at: at,
      revoked_at: null,
    });
    const after = { account, mode, scopes };
    await insertAuditEntries(db, [{ actor, action: "api_key.created", subject: id, before: null, after, at }]);
  });
  return { id, key };
}

/** Creates a public app id for wallets. It grants access to the gateway only. */
export async function createAppId(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; mode: Mode },
): Promise<{ appId: string }> {
  const appId = randomBytes(16).toString("hex");
  const { actor, accountId: account, mode } = args;
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    await insertAppId(db, { id: appId, account_id: account, mode, created_at: at, revoked_at: null });
    const after = { account, mode };
    await insertAuditEntries(db, [{ actor, action: "app_id.created", subject: appId, before: null, after, at }]);
  });
  return { appId };
}

/** Returns the caller that an API key belongs to; undefined for an unknown or revoked key. */
export async function findCallerByKey(deps: Pick<PaymentDeps, "db">, key: string): Promise<Caller | undefined> {
  const hash = hashKey(key);
  const row = await findLiveApiKey(deps.db, hash);
  if (!row || !timingSafeEqual(row.hash, hash)) return undefined;
  const { account_id: accountId, mode, scopes, id: keyId, api_version: version } = row;
  return { accountId, mode, scopes, keyId, version };
}

/** Returns the caller that an app id belongs to; undefined for an unknown or revoked app id. */
export async function findCallerByApp(deps: Pick<PaymentDeps, "db">, appId: string): Promise<Caller | undefined> {
  const row = await findLiveAppId(deps.db, appId);
  if (!row) return undefined;
  return { accountId: row.account_id, mode: row.mode, scopes: ["gateway"], keyId: null, version: row.api_version };
}

function hashKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
