import { sql, type Transaction } from "kysely";
import type { Db, Mode, Tables } from "../tables.ts";
import type { ApprovalKeyRow } from "./approval-keys.ts";
import type { DestinationChangeRow } from "./destination-changes.ts";

/**
 * A change that the signer has not been told of, with the accounts (CAIP-10) that it should know of: the one that applies now, the one
 * that is requested, and that of the change itself, or that of a deletion, if it is neither any more. So none hides another.
 */
export type UnreportedChange = Pick<DestinationChangeRow, "id" | "state" | "merchant_id" | "asset"> & {
  mode: "live" | "test";
  applied: string | null;
  requested: string | null;
  past: string | null;
};

/** Returns true while there is something to tell the signer. @param keysBefore as for `listUnreportedKeys` */
export async function hasUnreported(db: Db, keysBefore: Date): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select from destination_change where reported_at is null)
      or exists (select from approval_key where reported_at is null)
      or exists (select from approval_key where reported_at < ${keysBefore})
      or exists (select from signed_statement where reported_at is null and subject like 'dchg\\_%') as found`.execute(
    db,
  );
  return rows[0]?.found ?? false;
}

/**
 * Returns since when the oldest of these waits to be told to the signer; null when none does: changes of destinations and approval
 * keys of live merchants, signed statements about changes, and keys whose last report is older than `repeatAfterMs`.
 */
export async function findOldestUnreported(db: Db, { repeatAfterMs }: { repeatAfterMs: number }): Promise<Date | null> {
  const { rows } = await sql<{ since: Date | null }>`
    select least(
      (select min(case c.state when 'rejected' then c.decided_at when 'applied' then c.applied_at else c.created_at end)
        from destination_change c join merchant m on m.id = c.merchant_id
        where c.reported_at is null and m.mode = 'live'),
      (select min(coalesce(k.revoked_at, k.created_at)) from approval_key k join merchant m on m.id = k.merchant_id
        where k.reported_at is null and m.mode = 'live'),
      (select min(k.reported_at) + ${repeatAfterMs}::float8 * interval '1 millisecond'
        from approval_key k join merchant m on m.id = k.merchant_id where m.mode = 'live'),
      (select min(s.created_at) from signed_statement s
        join destination_change c on c.id = s.subject join merchant m on m.id = c.merchant_id
        where s.reported_at is null and m.mode = 'live')
    ) as since`.execute(db);
  return rows[0]?.since ?? null;
}

/**
 * Takes the lock of the reports until the commit. Returns false when another worker has it: its report is the newer one. Throws
 * when the lock's row is missing.
 */
export async function lockReports(db: Transaction<Tables>): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select try_lock_destination_reports() as taken`.execute(db);
  return rows[0]?.taken ?? false;
}

/** Returns changes that the signer has not been told of, oldest first. */
export async function listUnreportedChanges(db: Db, limit: number): Promise<UnreportedChange[]> {
  const { rows } = await sql<UnreportedChange>`
    select c.id, c.state, c.merchant_id, c.asset, m.mode, d.destination as applied, w.after as requested,
      case when a.account is distinct from d.destination and a.account is distinct from w.after then a.account end as past
    from destination_change c cross join lateral (select coalesce(c.after, c.before) as account) a join merchant m on m.id = c.merchant_id
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

/** Lets changes be reported again, as they are then. */
export async function markUnreported(db: Db, changes: readonly Pick<UnreportedChange, "id">[]): Promise<void> {
  if (changes.length === 0) return;
  const ids = changes.map(({ id }) => id);
  await db.updateTable("destination_change").set({ reported_at: null }).where("id", "in", ids).execute();
}

/** An approval key to tell the signer of. */
export type UnreportedKey = Pick<ApprovalKeyRow, "merchant_id" | "public_key" | "revoked_at"> & { mode: Mode };

/**
 * Returns approval keys, also revoked ones, that the signer was not told of as they are now, or only before a time: its store
 * may have been restored or rebuilt since.
 */
export async function listUnreportedKeys(
  db: Db,
  { before, limit }: { before: Date; limit: number },
): Promise<UnreportedKey[]> {
  return db
    .selectFrom("approval_key as k")
    .innerJoin("merchant as m", "m.id", "k.merchant_id")
    .select(["k.merchant_id", "k.public_key", "k.revoked_at", "m.mode"])
    .where(({ eb, or }) => or([eb("k.reported_at", "is", null), eb("k.reported_at", "<", before)]))
    .orderBy("k.reported_at", (order) => order.asc().nullsFirst())
    .limit(limit)
    .execute();
}

/** Marks approval keys as reported. A key that was revoked since it was read is reported again. */
export async function markKeysReported(db: Db, keys: readonly UnreportedKey[], at: Date): Promise<void> {
  if (keys.length === 0) return;
  await sql`
    update approval_key k set reported_at = ${at}
    from unnest(${keys.map((key) => key.merchant_id)}::text[], ${keys.map((key) => key.public_key)}::text[],
      ${keys.map((key) => key.revoked_at !== null)}::boolean[]) as r (merchant_id, public_key, revoked)
    where k.merchant_id = r.merchant_id and k.public_key = r.public_key and (k.revoked_at is not null) = r.revoked`.execute(
    db,
  );
}
