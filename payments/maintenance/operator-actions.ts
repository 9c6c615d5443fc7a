import { sql } from "kysely";
import { wakeSettlements } from "../../db/queries/payout-queue.ts";
import type { PaymentState } from "../../db/states.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { Scope } from "../merchants/accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

export type AccountView = {
  id: string;
  name: string;
  version: string;
  createdAt: Date;
  /** True if wallets and checkout pages may cancel the account's payments. */
  walletCancellationAllowed: boolean;
  merchants: number;
  keys: number;
};
export type KeyView = {
  id: string;
  mode: Mode;
  hint: string;
  scopes: Scope[];
  createdAt: Date;
  revokedAt: Date | null;
};
export type AppView = { id: string; mode: Mode; createdAt: Date; revokedAt: Date | null };
export type PaymentLine = {
  id: string;
  mode: Mode;
  state: PaymentState;
  merchantId: string;
  reference: string | null;
  amount: string;
  createdAt: Date;
  updatedAt: Date;
};

/** Lists accounts, newest first, or the account with the given id. */
export async function listAccounts({ db }: Pick<Deps, "db">, id?: string): Promise<AccountView[]> {
  const { rows } = await sql<AccountView>`
    select a.id, a.name, a.api_version as version, a.created_at as "createdAt", a.wallet_cancellation_allowed as "walletCancellationAllowed",
      (select count(*)::int from merchant m where m.account_id = a.id and m.deleted_at is null) as merchants,
      (select count(*)::int from api_key k where k.account_id = a.id and k.revoked_at is null) as keys
    from account a ${id === undefined ? sql`` : sql`where a.id = ${id}`} order by a.created_at desc, a.id`.execute(db);
  return rows;
}

/** Lists the API keys of an account. Each has a hint (its last four characters), never the key itself. */
export async function listKeys({ db }: Pick<Deps, "db">, accountId: string): Promise<KeyView[]> {
  const rows = await db
    .selectFrom("api_key")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at")
    .execute();
  return rows.map((row) => ({
    id: row.id,
    mode: row.mode,
    hint: row.hint,
    scopes: row.scopes,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
  }));
}

/** Lists the app ids of an account. */
export async function listApps({ db }: Pick<Deps, "db">, accountId: string): Promise<AppView[]> {
  const rows = await db
    .selectFrom("app_id")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at")
    .execute();
  return rows.map(({ id, mode, created_at: createdAt, revoked_at: revokedAt }) => ({ id, mode, createdAt, revokedAt }));
}

/** Revokes an API key or app id at once. Repeatable. Refuses with `api_key_not_found`. */
export async function revoke(
  { db, now }: Deps,
  kind: "api_key" | "app_id",
  id: string,
): Promise<Result<{ id: string }>> {
  const row = await db
    .updateTable(kind)
    .set({ revoked_at: sql`coalesce(revoked_at, ${now()})` })
    .where("id", "=", id)
    .returning("id")
    .executeTakeFirst();
  return row ? done(row) : refuse("api_key_not_found", `there is no ${kind === "api_key" ? "key" : "app id"} ${id}`);
}

/** Lists payments of all accounts, newest first. An undefined filter matches everything. */
export async function listPaymentLines(
  { db }: Pick<Deps, "db">,
  filter: {
    accountId?: string | undefined;
    merchantId?: string | undefined;
    state?: PaymentState | undefined;
    since?: Date | undefined;
    limit: number;
  },
): Promise<PaymentLine[]> {
  let query = db.selectFrom("payment").selectAll();
  if (filter.accountId) query = query.where("account_id", "=", filter.accountId);
  if (filter.merchantId) query = query.where("merchant_id", "=", filter.merchantId);
  if (filter.state) query = query.where("state", "=", filter.state);
  if (filter.since) query = query.where("created_at", ">=", filter.since);
  const rows = await query.orderBy("created_at", "desc").orderBy("id", "desc").limit(filter.limit).execute();
  return rows.map((row) => ({
    id: row.id,
    mode: row.mode,
    state: row.state,
    merchantId: row.merchant_id,
    reference: row.reference_id,
    amount: `${row.value} ${row.unit}`,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }));
}

/** Returns the account and mode of a merchant, also of a deleted one; undefined when there is no such merchant. */
export async function findMerchantOwner(
  { db }: Pick<Deps, "db">,
  merchantId: string,
): Promise<{ accountId: string; mode: Mode; evenDeleted: true } | undefined> {
  const row = await db
    .selectFrom("merchant")
    .select(["account_id", "mode"])
    .where("id", "=", merchantId)
    .executeTakeFirst();
  return row && { accountId: row.account_id, mode: row.mode, evenDeleted: true };
}

/** A merchant's balances that have not been paid out, in minor units of each asset, and when it was deleted. */
export type MerchantDebt = { deletedAt: Date | null; owed: { asset: string; amount: bigint }[] };
export type DeletedMerchant = MerchantDebt & { id: string; name: string };

const owedTo = sql<MerchantDebt["owed"]>`(
  select coalesce(jsonb_agg(jsonb_build_object('asset', b.asset, 'amount', b.amount::text) order by b.asset), '[]')
  from merchant_balance b where b.merchant_id = merchant.id and b.amount > 0)`;

/** Returns the balances of a merchant, also of a deleted one; undefined when there is no such merchant. */
export async function readDebt({ db }: Pick<Deps, "db">, merchantId: string): Promise<MerchantDebt | undefined> {
  const row = await db
    .selectFrom("merchant")
    .select(["deleted_at", owedTo.as("owed")])
    .where("id", "=", merchantId)
    .executeTakeFirst();
  return row && { deletedAt: row.deleted_at, owed: toOwed(row.owed) };
}

/** Lists the deleted merchants of an account and mode with their balances, most recently deleted first. */
export async function listDeletedMerchants(
  { db }: Pick<Deps, "db">,
  args: { accountId: string; mode: Mode; limit: number },
): Promise<DeletedMerchant[]> {
  const rows = await db
    .selectFrom("merchant")
    .select(["id", "name", "deleted_at", owedTo.as("owed")])
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .where("deleted_at", "is not", null)
    .orderBy("deleted_at", "desc")
    .orderBy("id")
    .limit(args.limit)
    .execute();
  return rows.map(({ id, name, deleted_at: deletedAt, owed }) => ({ id, name, deletedAt, owed: toOwed(owed) }));
}

const toOwed = (owed: readonly { asset: string; amount: bigint | string }[]) =>
  owed.map(({ asset, amount }) => ({ asset, amount: BigInt(amount) }));

/** Records an operator's action in the audit log. */
export async function recordAction(
  { db, now }: Deps,
  args: { actor: string; action: string; subject: string },
): Promise<void> {
  await db
    .insertInto("operator_action")
    .values({ ...args, at: now() })
    .execute();
}

/**
 * Makes all unfinished rows of a payment due now, so that the sweep enqueues their jobs within a second:
 * - attempts that wait for verification
 * - transfers that are ready, also those on hold
 * - a due settlement; if an obstacle blocks its payout queue, the obstacle is checked again
 * - the payment itself, if its deadline has passed
 * Idempotent. Returns the number of rows of each kind; undefined when there is no such payment.
 */
export async function retryPayment({ db, now }: Deps, paymentId: string): Promise<Record<string, number> | undefined> {
  const at = now();
  const payment = await db
    .selectFrom("payment")
    .select(["id", "settlement_id"])
    .where("id", "=", paymentId)
    .executeTakeFirst();
  if (!payment) return undefined;
  const due = { due_at: at };
  const queries = {
    payment: db
      .updateTable("payment")
      .set(due)
      .where("id", "=", paymentId)
      .where("state", "=", "requires_action")
      .where("expires_at", "<=", at),
    attempts: db.updateTable("attempt").set(due).where("payment_id", "=", paymentId).where("state", "=", "waiting"),
    transfers: db
      .updateTable("transfer")
      .set({ ...due, hold_until: null })
      .where("state", "=", "ready")
      .where(({ or, eb }) => or([eb("payment_id", "=", paymentId), eb("settlement_id", "=", payment.settlement_id)])),
    settlements: db
      .updateTable("settlement")
      .set(due)
      .where("id", "=", payment.settlement_id ?? "")
      .where("state", "=", "due"),
  };
  const counts: Record<string, number> = {};
  for (const [kind, query] of Object.entries(queries))
    counts[kind] = Number((await query.executeTakeFirst()).numUpdatedRows);
  if (counts["settlements"]) await wakeSettlementQueue(db, payment.settlement_id ?? "");
  return counts;
}

async function wakeSettlementQueue(db: Db, settlementId: string): Promise<void> {
  const row = await db
    .selectFrom("settlement")
    .select(["merchant_id as merchantId", "asset"])
    .where("id", "=", settlementId)
    .executeTakeFirst();
  if (row) await wakeSettlements(db, row);
}
