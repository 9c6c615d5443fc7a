import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { sql } from "kysely";
import { batchStatements } from "../../db/batch-calls.ts";
import type { Db, Mode, Tables } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";

export type Scope = Tables["api_key"]["scopes"][number];
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

/** Creates an account. */
export async function createAccount(deps: Deps, args: { name: string }): Promise<{ id: string }> {
  const id = newId("acct");
  await deps.db.insertInto("account").values({ id, name: args.name, created_at: deps.now() }).execute();
  return { id };
}

/** Creates an API key. Returns its text and stores only its hash. The prefix names the mode (specification, part 5). */
export async function createApiKey(
  deps: Deps,
  args: { accountId: string; mode: Mode; scopes: readonly Scope[] },
): Promise<{ id: string; key: string }> {
  const id = newId("key");
  // A plain hash is enough: 256 random bits cannot be guessed.
  const key = `${args.mode === "test" ? "svc_test_" : "svc_"}${randomBytes(32).toString("hex")}`;
  await deps.db
    .insertInto("api_key")
    .values({
      id,
      account_id: args.accountId,
      mode: args.mode,
      hash: hashKey(key),
      hint: key.slice(-4),
      scopes: [...args.scopes],
      created_at: deps.now(),
      revoked_at: null,
    })
    .execute();
  return { id, key };
}

/** Creates a public app id for wallets. It grants access to the gateway only. */
export async function createAppId(deps: Deps, args: { accountId: string; mode: Mode }): Promise<{ appId: string }> {
  const appId = randomBytes(16).toString("hex");
  await deps.db
    .insertInto("app_id")
    .values({ id: appId, account_id: args.accountId, mode: args.mode, created_at: deps.now(), revoked_at: null })
    .execute();
  return { appId };
}

/** Returns the caller that an API key belongs to; undefined for an unknown or revoked key. */
export async function findCallerByKey(deps: Pick<PaymentDeps, "db">, key: string): Promise<Caller | undefined> {
  const hash = hashKey(key);
  const row = await readKey(deps.db, hash);
  if (!row || !timingSafeEqual(row.hash, hash)) return undefined;
  const { account_id: accountId, mode, scopes, id: keyId, api_version: version } = row;
  return { accountId, mode, scopes, keyId, version };
}

/** Every request reads its key, so concurrent requests share a statement. */
const readKey = batchStatements(async (db: Db, hashes: readonly Buffer[]) => {
  const rows = await db
    .selectFrom("api_key as k")
    .innerJoin("account as a", "a.id", "k.account_id")
    .selectAll("k")
    .select("a.api_version")
    .where(sql<boolean>`k.hash = any(${hashes})`)
    .where("k.revoked_at", "is", null)
    .execute();
  return hashes.map((hash) => rows.find((row) => row.hash.equals(hash)));
});

/** Returns the caller that an app id belongs to; undefined for an unknown or revoked app id. */
export async function findCallerByApp(deps: Pick<PaymentDeps, "db">, appId: string): Promise<Caller | undefined> {
  const row = await deps.db
    .selectFrom("app_id as p")
    .innerJoin("account as a", "a.id", "p.account_id")
    .select(["p.account_id", "p.mode", "a.api_version"])
    .where("p.id", "=", appId)
    .where("p.revoked_at", "is", null)
    .executeTakeFirst();
  if (!row) return undefined;
  return { accountId: row.account_id, mode: row.mode, scopes: ["gateway"], keyId: null, version: row.api_version };
}

function hashKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
