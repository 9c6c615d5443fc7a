import { type Selectable, sql } from "kysely";
import type { Db, RetainedRelation, Tables } from "../tables.ts";

export type RetentionRow = Selectable<Tables["retention"]>;

/** SQL: the lowest id that a payment made at a time may have (payments/ids.ts). */
const lowestId = (at: Date) =>
  sql`'pay_' || lpad(to_hex(floor(extract(epoch from ${at}::timestamptz))::bigint), 8, '0')`;

/** Locks the progress of a table until the commit. Undefined while another worker has it. */
export async function lockRetention(db: Db, relation: RetainedRelation): Promise<RetentionRow | undefined> {
  return db
    .selectFrom("retention")
    .selectAll()
    .where("relation", "=", relation)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
}

/** Stores after how many days the rows of each table leave; null: never. Writes nothing when that is stored already. */
export async function storeRetentionDays(
  db: Db,
  days: Readonly<Record<RetainedRelation, number | null>>,
): Promise<void> {
  await sql`
    update retention r set days = given.days
    from unnest(${Object.keys(days)}::text[], ${Object.values(days)}::integer[]) as given (relation, days)
    where r.relation = given.relation and r.days is distinct from given.days`.execute(db);
}

/** Tables whose rows leave after those of another table, because those need them. */
const follows: Partial<Record<RetainedRelation, RetainedRelation>> = {
  event: "webhook_event",
  payment_option: "attempt",
};

/**
 * Returns the next payments of a table whose ids are from before a time, in the order of their ids: after those that have
 * been worked through, and not beyond the table that it follows.
 */
export async function listOldPayments(
  db: Db,
  { progress, before, limit }: { progress: RetentionRow; before: Date; limit: number },
): Promise<string[]> {
  const followed = follows[progress.relation] ?? null;
  const rows = await db
    .selectFrom("payment")
    .select("id")
    .where("id", ">", progress.after_payment)
    .where(sql<boolean>`id < ${lowestId(before)}`)
    .where(sql<boolean>`id <= coalesce((select after_payment from retention where relation = ${followed}), 'pay_g')`)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Returns payments that were passed and are to be checked again, the longest due first. */
export async function listRetriedPayments(
  db: Db,
  { relation, now, limit }: { relation: RetainedRelation; now: Date; limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom("retained_payment")
    .select("payment_id")
    .where("relation", "=", relation)
    .where("retry_at", "<=", now)
    .orderBy("retry_at")
    .limit(limit)
    .execute();
  return rows.map(({ payment_id }) => payment_id);
}

/** What left one table. `lines`: the rows as JSON, one a line; null when they are not exported or there are none. */
export type RemovedRows = { relation: string; removed: number; lines: string | null };

/**
 * Removes the rows of a table that belong to these payments and may leave (db/migrations/initial/retention.sql): those of
 * payments at rest since `before`. The rows of webhook events include deliveries and requests.
 */
export async function removeHistoryRows(
  db: Db,
  args: { relation: RetainedRelation; paymentIds: readonly string[]; before: Date; exported: boolean },
): Promise<RemovedRows[]> {
  const { rows } = await sql<RemovedRows>`
    select relation, removed::integer as removed, lines
    from remove_history(${args.relation}, ${args.paymentIds}::text[], ${args.before}, ${args.exported})`.execute(db);
  return rows;
}

/** For each table, SQL that finds a row of payment `given.id` which has not left. */
const remaining: Record<RetainedRelation, ReturnType<typeof sql>> = {
  attempt: sql`select from attempt where payment_id = given.id`,
  webhook_event: sql`select from webhook_event where payment_id = given.id
    union all select from webhook_event v join refund r on r.id = v.refund_id where r.payment_id = given.id`,
  event: sql`select from event where subject = given.id and machine = 'payment'`,
  payment_option: sql`select from payment_option o join payment p on p.id = o.payment_id
    where o.payment_id = given.id and p.option_id is distinct from o.id`,
};

/** Stores which of these payments still have rows of a table, to check them again at `retryAt`, and forgets the others. */
export async function retainPayments(
  db: Db,
  args: { relation: RetainedRelation; paymentIds: readonly string[]; retryAt: Date },
): Promise<void> {
  const { relation, paymentIds, retryAt } = args;
  await sql`
    with kept as (
      select id from unnest(${paymentIds}::text[]) as given (id) where exists (${remaining[relation]})
    ), gone as (
      delete from retained_payment where relation = ${relation} and payment_id = any(${paymentIds}::text[])
        and payment_id not in (select id from kept)
    )
    insert into retained_payment (relation, payment_id, retry_at) select ${relation}, id, ${retryAt} from kept
    on conflict (relation, payment_id) do update set retry_at = excluded.retry_at, error = null`.execute(db);
}

/** Stores that the rows of a payment could not be removed, and when to retry. */
export async function retainFailing(
  db: Db,
  row: { relation: RetainedRelation; payment_id: string; retry_at: Date; error: string },
): Promise<void> {
  const { retry_at, error } = row;
  await db
    .insertInto("retained_payment")
    .values(row)
    .onConflict((conflict) => conflict.columns(["relation", "payment_id"]).doUpdateSet({ retry_at, error }))
    .execute();
}

/** Stores how far a table has been worked through. `after` unset: the run checked passed payments again. */
export async function advanceRetention(
  db: Db,
  args: { relation: RetainedRelation; after: string | undefined; removed: number; at: Date },
): Promise<void> {
  await db
    .updateTable("retention")
    .set({
      ...(args.after === undefined ? {} : { after_payment: args.after }),
      removed: sql`removed + ${args.removed}::bigint`,
      ran_at: args.at,
    })
    .where("relation", "=", args.relation)
    .execute();
}

/** How far a table of history is. `next_at`: when the oldest payment was made that has not been worked through. `failing`: payments whose rows cannot be removed. */
export type RetentionAges = {
  relation: RetainedRelation;
  days: number | null;
  next_at: Date | null;
  failing: number;
};

/** Returns for each table the time of the next payment. Reads a few rows of an index. */
export async function listRetentionAges(db: Db): Promise<RetentionAges[]> {
  const { rows } = await sql<RetentionAges>`
    select relation, days,
      (select created_at from payment where id > after_payment order by id limit 1) as next_at,
      (select count(*) from retained_payment k where k.relation = r.relation and k.error is not null) as failing
    from retention r order by relation`.execute(db);
  return rows;
}

/** The tables that each name stands for. */
const tablesOf: Record<RetainedRelation, readonly string[]> = {
  attempt: ["attempt"],
  webhook_event: ["webhook_event", "webhook_delivery", "webhook_attempt"],
  event: ["event"],
  payment_option: ["payment_option"],
};

/** The size of a table of history with its indexes, in bytes, and how far it has been worked through. */
export type RetentionStatus = RetentionAges &
  Pick<RetentionRow, "removed" | "ran_at"> & { bytes: number; due: number; retained: number };

/**
 * Returns the size of each table of history and what is due: the number of payments that have not been worked through,
 * counted up to `limit`, and of those that were passed while some rows had to stay, or because their removal fails.
 */
export async function listRetentionStatus(
  db: Db,
  { now, limit }: { now: Date; limit: number },
): Promise<RetentionStatus[]> {
  const ages = await listRetentionAges(db);
  return Promise.all(
    ages.map(async (of) => {
      const { rows } = await sql<Omit<RetentionStatus, keyof RetentionAges>>`
        select r.removed, r.ran_at,
          (select sum(pg_total_relation_size(name::regclass))::bigint from unnest(${tablesOf[of.relation]}::text[]) as name) as bytes,
          (select count(*) from (
            select from payment p where p.id > r.after_payment
              and p.id < 'pay_' || lpad(to_hex(floor(extract(epoch from ${now}::timestamptz - r.days * interval '1 day'))::bigint), 8, '0')
            limit ${limit}) as old) as due,
          (select count(*) from retained_payment k where k.relation = r.relation) as retained
        from retention r where r.relation = ${of.relation}`.execute(db);
      const [row] = rows;
      if (!row) throw new Error(`the table retention has no row for ${of.relation}`);
      return { ...of, ...row };
    }),
  );
}

/** Returns the tables of history that rows of this payment have left or are leaving. */
export async function listRemovedHistory(db: Db, paymentId: string): Promise<RetainedRelation[]> {
  const rows = await db
    .selectFrom("retention as r")
    .select("relation")
    .where("after_payment", ">=", paymentId)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("retained_payment as k")
            .select("k.payment_id")
            .whereRef("k.relation", "=", "r.relation")
            .where("k.payment_id", "=", paymentId),
        ),
      ),
    )
    .orderBy("relation")
    .execute();
  return rows.map(({ relation }) => relation);
}
