import { type Insertable, type RawBuilder, type Selectable, sql, type Updateable } from "kysely";
import { anyOf } from "../any-of.ts";
import { batchStatements } from "../batch-calls.ts";
import type { Db, Mode, Tables } from "../tables.ts";

export type ApiKeyRow = Selectable<Tables["api_key"]>;

/** Inserts an API key. */
export async function insertApiKey(db: Db, row: Insertable<Tables["api_key"]>): Promise<ApiKeyRow> {
  return db.insertInto("api_key").values(row).returningAll().executeTakeFirstOrThrow();
}

/**
 * Returns the API key whose secret, or whose secret before the last rotation, has this hash, with the API version of its
 * account; also a key that no longer works. Concurrent calls share a statement, because every request reads its key.
 */
export const findApiKeyByHash: (db: Db, hash: Buffer) => Promise<(ApiKeyRow & { api_version: string }) | undefined> =
  batchStatements(async (db, hashes) => {
    const rows = await db
      .selectFrom("api_key as k")
      .innerJoin("account as a", "a.id", "k.account_id")
      .selectAll("k")
      .select("a.api_version")
      .where(sql<boolean>`(k.hash = any(${hashes}) or k.previous_hash = any(${hashes}))`)
      .execute();
    return hashes.map((hash) => rows.find((row) => row.hash.equals(hash) || row.previous_hash?.equals(hash)));
  });

/** The limits of a key, as its columns. */
type LimitColumns = Pick<ApiKeyRow, "scopes" | "merchant_ids" | "allowed_cidrs" | "expires_at">;

/** Selects the keys of an account and mode that can do nothing that a key with the limits `within` cannot do. */
export type KeysWithin = { accountId: string; mode: Mode; within: LimitColumns };

/** SQL: the rule of payments/merchants/key-limits.ts. A null column means no limit, so null is never within a limit. */
function isWithin({ accountId, mode, within }: KeysWithin): RawBuilder<boolean> {
  const conditions = [
    sql`account_id = ${accountId} and mode = ${mode} and scopes <@ ${within.scopes}::text[]`,
    within.merchant_ids && sql`merchant_ids <@ ${within.merchant_ids}::text[]`,
    within.allowed_cidrs &&
      sql`allowed_cidrs is not null and not exists (
        select from unnest(allowed_cidrs) as c (cidr) where not c.cidr::cidr <<= any(${within.allowed_cidrs}::cidr[]))`,
    within.expires_at && sql`expires_at <= ${within.expires_at}`,
  ];
  return sql`(${sql.join(
    conditions.filter((condition) => condition !== null),
    sql` and `,
  )})`;
}

/** Returns an API key; with `among`, only one of these. */
export async function findApiKeyRow(
  db: Db,
  { id, among }: { id: string; among: KeysWithin | undefined },
  options: { lock?: true } = {},
): Promise<ApiKeyRow | undefined> {
  let query = db.selectFrom("api_key").selectAll().where("id", "=", id);
  if (among) query = query.where(isWithin(among));
  return (options.lock ? query.forNoKeyUpdate() : query).executeTakeFirst();
}

/**
 * Locks an API key until the commit, and with it, in the order of their ids, the key `with`. Returns false when the key is
 * revoked.
 */
export async function lockLiveKey(db: Db, args: { id: string; with: string | undefined }): Promise<boolean> {
  const rows = await db
    .selectFrom("api_key")
    .select(["id", "revoked_at"])
    .where("id", "in", [args.id, ...(args.with === undefined ? [] : [args.with])])
    .orderBy("id")
    .forNoKeyUpdate()
    .execute();
  return rows.some(({ id, revoked_at }) => id === args.id && revoked_at === null);
}

/** Returns a page of API keys, newest first, also revoked ones. `after`: creation time and id of the last key before. */
export async function listApiKeyRows(
  db: Db,
  among: KeysWithin,
  { after, limit }: { after: readonly [string, string] | undefined; limit: number },
): Promise<ApiKeyRow[]> {
  let page = db.selectFrom("api_key").selectAll().where(isWithin(among)).limit(limit);
  if (after) page = page.where(sql<boolean>`(created_at, id) < (${after[0]}::timestamptz, ${after[1]})`);
  return page.orderBy("created_at", "desc").orderBy("id", "desc").execute();
}

/** Returns all API keys of an account, newest first, also revoked ones. */
export async function listAccountKeys(db: Db, accountId: string): Promise<ApiKeyRow[]> {
  const keys = db.selectFrom("api_key").selectAll().where("account_id", "=", accountId);
  return keys.orderBy("created_at", "desc").orderBy("id", "desc").execute();
}

/** Updates an API key. */
export async function updateApiKey(
  db: Db,
  id: string,
  changes: Pick<Updateable<Tables["api_key"]>, "hash" | "hint" | "previous_hash" | "previous_until">,
): Promise<ApiKeyRow> {
  return db.updateTable("api_key").set(changes).where("id", "=", id).returningAll().executeTakeFirstOrThrow();
}

/** Records that a key has made a secret of another one. */
export async function insertKeyMaker(db: Db, row: Insertable<Tables["api_key_maker"]>): Promise<void> {
  await db
    .insertInto("api_key_maker")
    .values(row)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/**
 * Locks an API key until the commit, and with `withCreated` also the keys of which it has ever made a secret, those of these keys, and so
 * on, in the order of their ids, as rotations do (avoids deadlock). Returns their ids.
 */
export async function lockKeyFamily(
  db: Db,
  { id, withCreated }: { id: string; withCreated: boolean },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    with recursive family as (
      select ${id}::text as id
      union select m.key_id from api_key_maker m join family f on m.maker_id = f.id where ${withCreated}
    )
    select id from api_key where id in (select id from family) order by id for no key update`.execute(db);
  return rows.map((row) => row.id);
}

/** Revokes locked API keys. Returns the ids of those that were not revoked before. */
export async function markKeysRevoked(db: Db, { ids, at }: { ids: readonly string[]; at: Date }): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    update api_key set revoked_at = ${at} where id = ${anyOf(ids)} and revoked_at is null returning id`.execute(db);
  return rows.map((row) => row.id);
}

/** The minimum time between two stored uses of one key. */
const USE_INTERVAL = sql`interval '1 minute'`;

/**
 * Stores when and from where keys were last used, unless a use within the last minute is stored. Locks the keys in the order of their
 * ids, as revocations do (avoids deadlock).
 */
export async function recordKeyUses(
  db: Db,
  uses: readonly { keyId: string; at: Date; address: string }[],
): Promise<void> {
  await sql`
    with used as (
      select k.id, u.at, u.address
      from unnest(
        ${uses.map(({ keyId }) => keyId)}::text[], ${uses.map(({ at }) => at)}::timestamptz[],
        ${uses.map(({ address }) => address)}::text[]
      ) as u (id, at, address)
      join api_key k on k.id = u.id and (k.last_used_at is null or k.last_used_at <= u.at - ${USE_INTERVAL})
      order by k.id for no key update of k
    )
    update api_key k set last_used_at = used.at, last_used_address = used.address from used where k.id = used.id`.execute(
    db,
  );
}
