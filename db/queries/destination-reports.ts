import { sql, type Transaction } from "kysely";
import type { Db, Tables } from "../tables.ts";
import type { DestinationChangeRow } from "./destination-changes.ts";

/**
 * A change that the signer has not been told of, with the account (CAIP-10) that its merchant asks for now: of the change that
 * waits, otherwise the one that applies. Null when there is neither.
 */
export type UnreportedChange = Pick<DestinationChangeRow, "id" | "state" | "merchant_id" | "asset"> & {
  mode: "live" | "test";
  wanted: string | null;
};

/** Returns true while there is something to tell the signer. */
export async function hasUnreported(db: Db): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select from destination_change where reported_at is null)
      or exists (select from signed_statement where reported_at is null and subject like 'dchg\\_%') as found`.execute(
    db,
  );
  return rows[0]?.found ?? false;
}

/** Takes the lock of the reports until the commit. Returns false when another worker has it: its report is the newer one. */
export async function lockReports(db: Transaction<Tables>): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended('destination reports', 0)) as taken`.execute(db);
  return rows[0]?.taken ?? false;
}

/** Returns changes that the signer has not been told of, oldest first. */
export async function listUnreportedChanges(db: Db, limit: number): Promise<UnreportedChange[]> {
  const { rows } = await sql<UnreportedChange>`
    select c.id, c.state, c.merchant_id, c.asset, m.mode, coalesce(w.after, d.destination) as wanted
    from destination_change c join merchant m on m.id = c.merchant_id
    left join destination_change w on w.merchant_id = c.merchant_id and w.asset = c.asset and w.state = 'requested'
    left join settlement_destination d on d.merchant_id = c.merchant_id and d.asset = c.asset
    where c.reported_at is null order by c.created_at, c.id limit ${limit}`.execute(db);
  return rows;
}

/** Marks changes as reported. A change that has moved since it was read is reported again. */
export async function markReported(
  db: Db,
  changes: readonly Pick<UnreportedChange, "id" | "state">[],
  at: Date,
): Promise<void> {
  if (changes.length === 0) return;
  await sql`
    update destination_change c set reported_at = ${at}
    from unnest(${changes.map(({ id }) => id)}::text[], ${changes.map(({ state }) => state)}::text[]) as r (id, state)
    where c.id = r.id and c.state = r.state`.execute(db);
}

/** An approval key of a live merchant, in hex. */
export type UnreportedKey = { merchant_id: string; public_key: string };

/** Returns approval keys of working API keys that the signer has not been told of, with each merchant that a key reaches. */
export async function listUnreportedKeys(
  db: Db,
  { now, limit }: { now: Date; limit: number },
): Promise<UnreportedKey[]> {
  const { rows } = await sql<UnreportedKey>`
    select m.id as merchant_id, k.approval_public_key as public_key
    from api_key k join merchant m on m.account_id = k.account_id and m.mode = k.mode
      and (k.merchant_ids is null or m.id = any(k.merchant_ids))
    where k.mode = 'live' and k.approval_public_key is not null and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > ${now}) and m.deleted_at is null
      and not exists (select from approval_key_report r
        where r.merchant_id = m.id and r.public_key = k.approval_public_key)
    limit ${limit}`.execute(db);
  return rows;
}

/** Marks approval keys as reported. */
export async function markKeysReported(db: Db, keys: readonly UnreportedKey[], at: Date): Promise<void> {
  if (keys.length === 0) return;
  await db
    .insertInto("approval_key_report")
    .values(keys.map((key) => ({ ...key, reported_at: at })))
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
