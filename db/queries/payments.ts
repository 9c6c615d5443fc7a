import { type Selectable, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { batchStatements } from "../batch-calls.ts";
import { paymentColumns } from "../columns.ts";
import { sortByText } from "../sort-by-text.ts";
import { type PaymentState, paymentStates } from "../states.ts";
import type { Db, Mode, Tables } from "../tables.ts";
import { isInList, type ListOwners, listParts } from "./payment-filters.ts";
import { deducted } from "./settlement-deductions.ts";

export type PaymentRow = Selectable<Tables["payment"]>;
/** A payment with the public details of its merchant. */
export type PaymentWithMerchant = PaymentRow & { merchant_name: string; merchant_logo_id: string | null };

/** A payment that requires action, with the columns that its creation sets. */
export type NewPaymentRow = Pick<
  PaymentRow,
  | "id"
  | "account_id"
  | "merchant_id"
  | "mode"
  | "reference_id"
  | "description"
  | "unit"
  | "value"
  | "created_at"
  | "expires_at"
> & {
  /** The merchant's own values as JSON. */
  metadata: string | null;
  /** The shop's URLs as JSON. */
  checkout: string | null;
  due_at: Date | null;
};

/** An idempotency key of the payment's merchant, with the response that is stored under it. */
export type ClaimedKey = { operation: string; key: string; digest: Buffer; status: number; response_body: string };

/**
 * Inserts a payment, and with `claim` an idempotency key. Inserts nothing and returns false when the key is taken; waits
 * while another transaction holds it. Concurrent calls share a statement and its commit.
 */
export async function insertPayment(db: Db, row: NewPaymentRow, claim?: ClaimedKey): Promise<boolean> {
  return insertClaimed(db, { ...row, claim });
}

type ClaimedRow = NewPaymentRow & { claim: ClaimedKey | undefined };

const insertClaimed = batchStatements(async (db: Db, unordered: readonly ClaimedRow[]): Promise<boolean[]> => {
  // The same order in every process, which avoids deadlocks between requests with the same idempotency keys.
  const rows = sortByText(unordered, ({ account_id, mode, merchant_id, claim }) =>
    JSON.stringify([account_id, mode, merchant_id, claim?.operation, claim?.key]),
  );
  const all = <C extends keyof NewPaymentRow>(column: C) => rows.map((row) => row[column]);
  const allClaimed = <C extends keyof ClaimedKey>(column: C) => rows.map(({ claim }) => claim?.[column] ?? null);
  const { rows: inserted } = await sql<{ id: string }>`
    with n as materialized (
      select * from unnest(
        ${all("id")}::text[], ${all("account_id")}::text[], ${all("merchant_id")}::text[], ${all("mode")}::text[],
        ${all("reference_id")}::text[], ${all("description")}::text[], ${all("metadata")}::jsonb[], ${all("unit")}::text[], ${all("value")}::numeric[], ${all("checkout")}::jsonb[],
        ${all("created_at")}::timestamptz[], ${all("expires_at")}::timestamptz[], ${all("due_at")}::timestamptz[],
        ${allClaimed("operation")}::text[], ${allClaimed("key")}::text[], ${allClaimed("digest")}::bytea[],
        ${allClaimed("status")}::int[], ${allClaimed("response_body")}::text[]
      ) as n (id, account_id, merchant_id, mode, reference_id, description, metadata, unit, value, checkout, created_at,
        expires_at, due_at, operation, key, digest, status, response_body)
    ), claimed as (
      insert into idempotency (account_id, mode, merchant_id, operation, key, digest, status, response_body, created_at)
      select account_id, mode, merchant_id, operation, key, digest, status, response_body, created_at
      from n where key is not null
      on conflict do nothing returning response_body
    )
    insert into payment (id, account_id, merchant_id, mode, reference_id, description, metadata, unit, value, checkout,
      state, created_at, updated_at, expires_at, due_at)
    select id, account_id, merchant_id, mode, reference_id, description, metadata, unit, value, checkout,
      'requires_action', created_at, created_at, expires_at, due_at
    -- A response names its payment, so of two payments with one key only the claimed one is inserted.
    from n where key is null or response_body in (select response_body from claimed)
    returning id`.execute(db);
  const ids = new Set(inserted.map(({ id }) => id));
  return unordered.map(({ id }) => ids.has(id));
});

/** Identifies a payment. Every query includes the mode; a merchant's own calls include the merchant. */
export type PaymentQuery = {
  paymentId: string;
  mode: Mode;
  merchant?: { accountId: string; merchantId: string } | undefined;
  /** The merchants that the caller's key is restricted to; null or unset: all of them. */
  onlyMerchants?: readonly string[] | null;
};

/** Returns a payment of a mode; when `merchant` or `onlyMerchants` are set, only a payment of these. */
export async function findPayment(db: Db, args: PaymentQuery): Promise<PaymentWithMerchant | undefined> {
  const row = await readWithMerchant(db, args.paymentId);
  return row && isReached(row, args) ? row : undefined;
}

/** Returns true for a payment of the query's mode; when `merchant` or `onlyMerchants` are set, only for one of these. */
export function isReached(
  row: Pick<PaymentRow, "mode" | "account_id" | "merchant_id">,
  { mode, merchant, onlyMerchants }: Omit<PaymentQuery, "paymentId">,
): boolean {
  const isTheirs =
    merchant === undefined || (row.account_id === merchant.accountId && row.merchant_id === merchant.merchantId);
  const isAllowed = !onlyMerchants || onlyMerchants.includes(row.merchant_id);
  return row.mode === mode && isTheirs && isAllowed;
}

/** Returns a payment of either mode by its id. */
export async function findPaymentOfAnyMode(db: Db, id: string): Promise<PaymentWithMerchant | undefined> {
  return readWithMerchant(db, id);
}

/** Reads a payment. Concurrent calls share a statement, because every poll and every confirm reads a payment. */
const readWithMerchant = batchStatements(async (db: Db, ids: readonly string[]) => {
  const rows: PaymentWithMerchant[] = await db
    .selectFrom("payment as p")
    .innerJoin("merchant as m", "m.id", "p.merchant_id")
    .select(paymentColumns.map((column) => `p.${column}` as const))
    .select(["m.name as merchant_name", "m.logo_id as merchant_logo_id"])
    .where(sql<boolean>`p.id = ${anyOf(ids)}`)
    .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => byId.get(id));
});

/**
 * Returns the transaction that paid out a payment's settlement, and the amount that earlier refunds deducted from the
 * payment. Undefined until the payout is confirmed.
 */
export async function findPayout(
  db: Db,
  paymentId: string,
): Promise<{ tx_hash: string; deducted: bigint } | undefined> {
  const { rows } = await sql<{ tx_hash: string; deducted: bigint }>`
    select coalesce(s.tx_hash, g.tx_hash) as tx_hash, ${deducted} as deducted from payment p
    join settlement s on s.id = p.settlement_id
    left join transfer t on t.settlement_id = s.id and t.purpose = 'settlement'
    left join ledger_group g on g.kind = 'settlement_paid' and g.subject = t.id
    where p.id = ${paymentId} and coalesce(s.tx_hash, g.tx_hash) is not null`.execute(db);
  return rows[0];
}

/**
 * Locks payments until the commit, in the order of their ids. Rows that refer to the payments can be inserted meanwhile: a refund that
 * begins records what it deducts from payments while it has locked what the holder of this lock waits for.
 */
export async function lockPayments(db: Db, ids: readonly string[]): Promise<void> {
  const rows = db.selectFrom("payment").select("id").where(sql<boolean>`id = any(${ids})`).orderBy("id");
  await rows.forNoKeyUpdate().execute();
}

/** Returns payments by id. */
export async function listPayments(db: Db, ids: readonly string[]): Promise<PaymentRow[]> {
  if (ids.length === 0) return [];
  return db.selectFrom("payment").select(paymentColumns).where(sql<boolean>`id = any(${ids})`).execute();
}

/** Returns the payments of attempts. */
export async function listPaymentsOfAttempts(db: Db, attemptIds: readonly string[]): Promise<PaymentRow[]> {
  const ids = sql`select payment_id from attempt where id = ${anyOf(attemptIds)}`;
  return db.selectFrom("payment").select(paymentColumns).where(sql<boolean>`id = any(array(${ids}))`).execute();
}

/** Returns a payment without its merchant. */
export async function findPaymentRow(db: Db, id: string): Promise<PaymentRow | undefined> {
  return db.selectFrom("payment").select(paymentColumns).where("id", "=", id).executeTakeFirst();
}

/** Returns the id of any payment, of either mode; undefined while there is none. */
export async function findAnyPaymentId(db: Db): Promise<string | undefined> {
  return (await db.selectFrom("payment").select("id").limit(1).executeTakeFirst())?.id;
}

/** Selects payments of all accounts. An undefined member does not narrow. */
export type NewestFilter = {
  ids?: readonly string[] | undefined;
  accountId?: string | undefined;
  merchantId?: string | undefined;
  state?: PaymentState | undefined;
  since?: Date | undefined;
  limit: number;
};

const lineColumns = [
  "id",
  "mode",
  "state",
  "merchant_id",
  "reference_id",
  "unit",
  "value",
  "created_at",
  "updated_at",
] as const;

type LineRow = Pick<PaymentRow, (typeof lineColumns)[number]>;

/** Returns payments, newest first, with the columns of a line of a list. */
export async function listNewestPayments(db: Db, filter: NewestFilter): Promise<LineRow[]> {
  const { ids, accountId, merchantId, state, since, limit } = filter;
  const conditions = [
    ...(accountId ? [sql`p.account_id = ${accountId}`] : []),
    ...(merchantId ? [sql`p.merchant_id = ${merchantId}`] : []),
    ...(state ? [sql`p.state = ${state}`] : []),
    ...(since ? [sql`p.created_at >= ${since}`] : []),
  ];
  const where = sql.join([sql`true`, ...conditions], sql` and `);
  const newest = sql`order by p.created_at desc, p.id desc limit ${limit}`;
  const columns = sql.join(lineColumns.map((column) => sql.ref(`p.${column}`)));
  const owners: ListOwners = merchantId
    ? { by: "merchant", rows: sql`select id, mode from merchant where id = ${merchantId}` }
    : {
        by: "account",
        rows: sql`select a.id, m.mode from account a cross join (values ('test'), ('live')) m (mode)
          where ${accountId ? sql`a.id = ${accountId}` : sql`true`}`,
      };
  const { rows } = ids
    ? await sql<LineRow>`select ${columns} from payment p where p.id = any(${ids}) and ${where} ${newest}`.execute(db)
    : await sql<LineRow>`
        with recursive ${listParts(owners, state ? [state] : paymentStates, {})}
        select p.* from list l
        cross join lateral (select ${columns} from payment p where ${isInList(owners)} and ${where} ${newest}) p
        ${newest}`.execute(db);
  return rows;
}

/** Makes a payment due whose deadline has passed. Returns the number of payments (0 or 1). */
export async function makePaymentDue(db: Db, { id, at }: { id: string; at: Date }): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("payment")
    .set({ due_at: at })
    .where("id", "=", id)
    .where("state", "=", "requires_action")
    .where("expires_at", "<=", at)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Returns the deadline of a payment that still awaits its buyer, when it has passed. */
export async function findPassedDeadline(db: Db, { id, at }: { id: string; at: Date }): Promise<Date | undefined> {
  const row = await db
    .selectFrom("payment")
    .select("expires_at")
    .where("id", "=", id)
    .where("state", "=", "requires_action")
    .where("expires_at", "<=", at)
    .executeTakeFirst();
  return row?.expires_at;
}

/** Stores when the expiry of a payment that still awaits its buyer is due. */
export async function postponeExpiry(db: Db, { id, dueAt }: { id: string; dueAt: Date }): Promise<void> {
  await db
    .updateTable("payment")
    .set({ due_at: dueAt })
    .where("id", "=", id)
    .where("state", "=", "requires_action")
    .execute();
}

/** Records what a simulated buyer has paid for a payment of test mode in processing. Returns false when it is another one. */
export async function recordSimulatedPayment(
  db: Db,
  paid: { id: string; asset: string; amount: bigint },
): Promise<boolean> {
  const { rows } = await sql<{ id: string }>`
    select id from record_simulated_payment(${paid.id}, ${`test:${paid.id}`}, ${paid.asset}, ${paid.amount}) as id`.execute(
    db,
  );
  return rows.length > 0;
}
