import { type Insertable, type Selectable, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { batchStatements } from "../batch-calls.ts";
import { attemptColumns } from "../columns.ts";
import type { Db, Tables, Verification } from "../tables.ts";
import { type CurrentOption, listOptionsOfAttempts, type OptionRow } from "./payment-options.ts";
import { listPaymentsOfAttempts, type PaymentRow } from "./payments.ts";

export type AttemptRow = Selectable<Tables["attempt"]>;

/** An attempt without the wallet's results, which may be long. */
export type AttemptHead = Omit<AttemptRow, "results" | "digest" | "merchant_id" | "traceparent">;
const head = [
  "id",
  "payment_id",
  "option_id",
  "chain",
  "verification",
  "state",
  "refusal",
  "created_at",
  "due_at",
  "due_retries",
] as const satisfies readonly (keyof AttemptHead)[];

/** Returns the attempt that an identical confirm created before, if there is one. Concurrent calls share a statement. */
export const findAttemptByDigest: (
  db: Db,
  args: { paymentId: string; digest: Buffer },
) => Promise<AttemptHead | undefined> = batchStatements(async (db, asked) => {
  const rows = await db
    .selectFrom("attempt")
    .select([...head, "digest"])
    .where(
      sql<boolean>`(payment_id, digest) in (
        select * from unnest(${asked.map(({ paymentId }) => paymentId)}::text[], ${asked.map(({ digest }) => digest)}::bytea[]))`,
    )
    .execute();
  return asked.map(({ paymentId, digest }) =>
    rows.find((row) => row.payment_id === paymentId && row.digest.equals(digest)),
  );
});

/** Inserts an attempt. Returns false when an identical confirm has been inserted meanwhile. */
export async function insertAttempt(
  db: Db,
  row: Omit<Insertable<Tables["attempt"]>, "chain" | "merchant_id">,
): Promise<boolean> {
  const chain = sql<string>`(select chain from payment_option where id = ${row.option_id})`;
  const merchant_id = sql<string>`(select merchant_id from payment where id = ${row.payment_id})`;
  const inserted = await db
    .insertInto("attempt")
    .values({ ...row, chain, merchant_id })
    .onConflict((conflict) => conflict.columns(["payment_id", "digest"]).doNothing())
    .returning("id")
    .execute();
  return inserted.length > 0;
}

/** A confirm that is going to be inserted as an attempt. */
export type NewAttempt = {
  id: string;
  payment_id: string;
  option_id: string;
  digest: Buffer;
  results: readonly unknown[];
  /** The span of the request that confirms, if its trace is sampled. */
  traceparent?: string | null;
  verification: Verification;
  created_at: Date;
  due_at: Date;
};

/** The maximum number of attempts per option with a valid signature of the payer's key, which only the payer can make. */
const KEY_ATTEMPTS = 10;

/**
 * Inserts a waiting attempt. Returns false when an identical confirm has been inserted meanwhile, or when the option has
 * too many attempts of this kind. Concurrent calls share a statement and a commit.
 */
export const insertKeyAttempt: (db: Db, row: NewAttempt) => Promise<boolean> = batchStatements(async (db, rows) => {
  const given = rows.map(({ digest, ...row }, at) => ({ ...row, at, digest: digest.toString("hex") }));
  const inserted = await sql<{ id: string }>`
    insert into attempt (id, payment_id, option_id, chain, merchant_id, digest, results, traceparent, verification, state,
      created_at, due_at)
    select numbered.id, numbered.payment_id, numbered.option_id, o.chain, p.merchant_id, decode(digest, 'hex'), results,
      traceparent, verification, 'waiting', numbered.created_at, numbered.due_at
    from (
      select given.id, given.payment_id, given.option_id, given.digest, given.results, given.traceparent,
        given.verification, given.created_at, given.due_at, row_number() over (partition by option_id order by at) + (
        select count(*) from attempt kept where kept.payment_id = given.payment_id
          and kept.option_id = given.option_id and kept.verification = given.verification
      ) as number
      from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as given (
        at integer, id text, payment_id text, option_id text, digest text, results jsonb, traceparent text,
        verification text, created_at timestamptz, due_at timestamptz)
    ) as numbered
    join payment_option o on o.id = numbered.option_id join payment p on p.id = numbered.payment_id
    where numbered.number <= ${KEY_ATTEMPTS}
    on conflict (payment_id, digest) do nothing
    returning id`.execute(db);
  const ids = new Set(inserted.rows.map(({ id }) => id));
  return rows.map(({ id }) => ids.has(id));
});

/**
 * Locks a payment and returns its attempts that no key signature proves. Until the commit, other calls for the payment wait, so
 * that the caller can count the attempts.
 */
export async function lockUnprovenAttempts(db: Db, paymentId: string): Promise<AttemptHead[]> {
  await db.selectFrom("payment").select("id").where("id", "=", paymentId).forNoKeyUpdate().execute();
  return db
    .selectFrom("attempt")
    .select(head)
    .where("payment_id", "=", paymentId)
    .where("verification", "<>", "key")
    .orderBy("created_at")
    .execute();
}

/** Deletes refused attempts. Keeps their events. */
export async function deleteRefusedAttempts(db: Db, ids: readonly string[]): Promise<void> {
  await db.deleteFrom("attempt").where(sql<boolean>`id = any(${ids})`).where("state", "=", "refused").execute();
}

/** Deletes refused attempts that were created before a time, and returns how many. Keeps their events. */
export async function deleteOldRefusedAttempts(db: Db, args: { before: Date; limit: number }): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom("attempt")
    .where(
      sql<boolean>`id in (
        select id from attempt where state = 'refused' and created_at < ${args.before} order by created_at limit ${args.limit})`,
    )
    .where("state", "=", "refused")
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Returns when an attempt last changed its state. */
export async function findLastMove(db: Db, attemptId: string): Promise<Date | undefined> {
  const row = await db
    .selectFrom("event")
    .select("at")
    .where("subject", "=", attemptId)
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.at;
}

/** Marks waiting attempts, whose payers turned out to be contracts, to be verified by the contract. */
export async function markAsVerifiedByWallet(db: Db, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable("attempt")
    .set({ verification: "wallet" })
    .where(sql<boolean>`id = any(${ids})`)
    .where("state", "=", "waiting")
    .execute();
}

/** Returns an attempt. Concurrent calls share a statement. */
export const findAttempt: (db: Db, id: string) => Promise<AttemptHead | undefined> = batchStatements(
  async (db, ids) => {
    const rows = await db
      .selectFrom("attempt")
      .select(head)
      .where(sql<boolean>`id = ${anyOf(ids)}`)
      .execute();
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.map((id) => byId.get(id));
  },
);

/** Returns the id of a payment's verified attempt. */
export async function findVerifiedAttempt(db: Db, paymentId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("attempt")
    .select("id")
    .where("payment_id", "=", paymentId)
    .where("state", "=", "verified")
    .executeTakeFirst();
  return row?.id;
}

/** Returns a payment's verified attempt when an unsolicited payment created it, and not a confirm. */
export async function findAttemptOpenedByTransfer(db: Db, paymentId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("attempt")
    .select("id")
    .where("payment_id", "=", paymentId)
    .where("state", "=", "verified")
    .where(sql<boolean>`results = '[]'::jsonb`)
    .executeTakeFirst();
  return row?.id;
}

/** Returns a payment's verified attempt when the money that pays it moved in this transaction. */
export async function findAttemptPaidIn(
  db: Db,
  { paymentId, txHash }: { paymentId: string; txHash: string },
): Promise<string | undefined> {
  const row = await db
    .selectFrom("attempt as a")
    .innerJoin("transfer as t", "t.payment_id", "a.payment_id")
    .innerJoin("observation as o", "o.transfer_id", "t.id")
    .select("a.id")
    .where("a.payment_id", "=", paymentId)
    .where("a.state", "=", "verified")
    .where("o.tx_hash", "=", txHash)
    .where("o.orphaned", "=", false)
    .executeTakeFirst();
  return row?.id;
}

/** An attempt with the rows that its verification needs. */
export type AttemptWithContext = { attempt: AttemptRow; option: CurrentOption; payment: PaymentRow };

/** Returns those of these attempts that wait for verification, with their options and payments, in no particular order. */
export async function listWaitingAttempts(db: Db, ids: readonly string[]): Promise<AttemptWithContext[]> {
  const [attempts, options, payments] = await Promise.all([
    db
      .selectFrom("attempt")
      .select(attemptColumns)
      .where(sql<boolean>`id = ${anyOf(ids)}`)
      .where("state", "=", "waiting")
      .execute(),
    listOptionsOfAttempts(db, ids),
    listPaymentsOfAttempts(db, ids),
  ]);
  const optionOf = new Map(options.map((option) => [option.id, option]));
  const paymentOf = new Map(payments.map((payment) => [payment.id, payment]));
  return attempts.map((attempt) => {
    const option = optionOf.get(attempt.option_id);
    const payment = paymentOf.get(attempt.payment_id);
    if (!option || !payment) throw new Error(`attempt ${attempt.id} has no option or no payment`);
    return { attempt, option, payment };
  });
}

/** Locks the waiting attempts of payments until the commit, in the order of their ids. */
export async function lockWaitingOf(db: Db, paymentIds: readonly string[]): Promise<void> {
  await db
    .selectFrom("attempt")
    .select("id")
    .where(sql<boolean>`payment_id = any(${paymentIds})`)
    .where("state", "=", "waiting")
    .orderBy("id")
    .forUpdate()
    .execute();
}

/** Makes a payment's waiting attempts due. Returns how many. */
export async function makeAttemptsDue(db: Db, { paymentId, at }: { paymentId: string; at: Date }): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("attempt")
    .set({ due_at: at })
    .where("payment_id", "=", paymentId)
    .where("state", "=", "waiting")
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Returns what wallets sent in the attempts of a quote that are verified by key, newest first. */
export async function listKeyResults(db: Db, option: Pick<OptionRow, "id" | "payment_id">): Promise<unknown[]> {
  const rows = await db
    .selectFrom("attempt")
    .select("results")
    .where("payment_id", "=", option.payment_id)
    .where("option_id", "=", option.id)
    .where("verification", "=", "key")
    .orderBy("created_at", "desc")
    .limit(KEY_ATTEMPTS)
    .execute();
  return rows.map(({ results }) => results);
}

/** Returns the earliest attempt of a quote that waits for verification. */
export async function findWaitingAttemptOf(
  db: Db,
  option: Pick<OptionRow, "id" | "payment_id">,
): Promise<Pick<AttemptRow, "id" | "verification"> | undefined> {
  return db
    .selectFrom("attempt")
    .select(["id", "verification"])
    .where("payment_id", "=", option.payment_id)
    .where("option_id", "=", option.id)
    .where("state", "=", "waiting")
    .orderBy("created_at")
    .limit(1)
    .executeTakeFirst();
}

/** The confirms of one quote: when the earliest was made that still waits; null when none waits. */
export type QuoteConfirms = { option_id: string; waiting_since: Date | null };

/** Returns the confirms of payments by quote. A quote without a confirm is not in the result. */
export async function listQuoteConfirms(db: Db, paymentIds: readonly string[]): Promise<QuoteConfirms[]> {
  return db
    .selectFrom("attempt")
    .select(["option_id", sql<Date | null>`min(created_at) filter (where state = 'waiting')`.as("waiting_since")])
    .where(sql<boolean>`payment_id = any(${paymentIds})`)
    .groupBy("option_id")
    .execute();
}
