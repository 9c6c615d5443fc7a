import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { sql } from "kysely";
import type { Db, Mode } from "../db/tables.ts";
import { statementTogether } from "../db/together.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";

export type Scope = "gateway" | "merchant";
/** Who is calling, and what they may do. */
export type Caller = {
  accountId: string;
  mode: Mode;
  scopes: readonly Scope[];
  /** The API key it came with; null for an app id, which belongs to everybody who has the app. */
  keyId: string | null;
  /** Version of the contract that its account is pinned to. */
  version: string;
};

type Deps = Pick<PaymentDeps, "db" | "now">;

/** Makes an account. */
export async function createAccount(deps: Deps, args: { name: string }): Promise<{ id: string }> {
  const id = newId("acct");
  await deps.db.insertInto("account").values({ id, name: args.name, created_at: deps.now() }).execute();
  return { id };
}

/** Makes a key. The text is given this once and stored only as a hash; its prefix says the mode (specification, part 5). */
export async function createApiKey(
  deps: Deps,
  args: { accountId: string; mode: Mode; scopes: readonly Scope[] },
): Promise<{ id: string; key: string }> {
  const id = newId("key");
  // 256 random bits: a plain hash is enough, there is nothing to guess.
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

/** Makes a public app id for wallets; it reaches the gateway and nothing else. */
export async function createAppId(deps: Deps, args: { accountId: string; mode: Mode }): Promise<{ appId: string }> {
  const appId = randomBytes(16).toString("hex");
  await deps.db
    .insertInto("app_id")
    .values({ id: appId, account_id: args.accountId, mode: args.mode, created_at: deps.now(), revoked_at: null })
    .execute();
  return { appId };
}

/** Whose key this is; undefined when nobody's, or revoked. */
export async function findCallerByKey(deps: Pick<PaymentDeps, "db">, key: string): Promise<Caller | undefined> {
  const hash = hashKey(key);
  const row = await readKey(deps.db, hash);
  if (!row || !timingSafeEqual(row.hash, hash)) return undefined;
  const { account_id: accountId, mode, scopes, id: keyId, api_version: version } = row;
  return { accountId, mode, scopes: scopes as Scope[], keyId, version };
}

/** Every call proves itself; those of the same moment share a statement. */
const readKey = statementTogether(async (db: Db, hashes: readonly Buffer[]) => {
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

/** Whose app id this is; undefined when nobody's, or revoked. */
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
