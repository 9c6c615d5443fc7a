import { sql } from "kysely";
import { wakeSettlements } from "../db/payout-queue.ts";
import type { PaymentState } from "../db/states.ts";
import type { Db, Mode } from "../db/tables.ts";
import type { Scope } from "./accounts.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";

/** What operators ask and do by hand, beyond what callers may. */
type Deps = Pick<PaymentDeps, "now"> & { db: Db };

export type AccountView = {
  id: string;
  name: string;
  version: string;
  createdAt: Date;
  /** Wallets and checkout pages may cancel its payments. */
  walletsCancel: boolean;
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

/** Accounts, the newest first; one when its id is given. */
export async function listAccounts({ db }: Pick<Deps, "db">, id?: string): Promise<AccountView[]> {
  const { rows } = await sql<AccountView>`
    select a.id, a.name, a.api_version as version, a.created_at as "createdAt", a.wallets_cancel as "walletsCancel",
      (select count(*)::int from merchant m where m.account_id = a.id and m.deleted_at is null) as merchants,
      (select count(*)::int from api_key k where k.account_id = a.id and k.revoked_at is null) as keys
    from account a ${id === undefined ? sql`` : sql`where a.id = ${id}`} order by a.created_at desc, a.id`.execute(db);
  return rows;
}

/** Keys of an account: the last four characters of each, never the key. */
export async function listKeys({ db }: Pick<Deps, "db">, accountId: string): Promise<KeyView[]> {
  const rows = await db
    .selectFrom("api_key")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at")
    .execute();
  return rows.map((row) => ({
    ...{ id: row.id, mode: row.mode, hint: row.hint, scopes: row.scopes as Scope[] },
    ...{ createdAt: row.created_at, revokedAt: row.revoked_at },
  }));
}

/** App ids of an account. */
export async function listApps({ db }: Pick<Deps, "db">, accountId: string): Promise<AppView[]> {
  const rows = await db
    .selectFrom("app_id")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at")
    .execute();
  return rows.map(({ id, mode, created_at: createdAt, revoked_at: revokedAt }) => ({ id, mode, createdAt, revokedAt }));
}

/** From now on nobody gets in with it; again for one that is revoked already. Refuses with `api_key_not_found`. */
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

/** Payments of everybody, the newest first; what is undefined does not narrow. */
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
    ...{ id: row.id, mode: row.mode, state: row.state, merchantId: row.merchant_id, reference: row.reference_id },
    ...{ amount: `${row.value} ${row.unit}`, createdAt: row.created_at, updatedAt: row.updated_at },
  }));
}

/** Whose a merchant is, in either mode, also when it is deleted: operators reach it for as long as there are rows of it. */
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

/** What a merchant is owed and has not been sent yet, minor units of each asset; and since when it is deleted. */
export type MerchantDebt = { deletedAt: Date | null; owed: { asset: string; amount: bigint }[] };
export type DeletedMerchant = MerchantDebt & { id: string; name: string };

const owedTo = sql<MerchantDebt["owed"]>`(
  select coalesce(jsonb_agg(jsonb_build_object('asset', b.asset, 'amount', b.amount::text) order by b.asset), '[]')
  from merchant_balance b where b.merchant_id = merchant.id and b.amount > 0)`;

/** What a merchant is owed, also a deleted one; undefined when there is no such merchant. */
export async function readDebt({ db }: Pick<Deps, "db">, merchantId: string): Promise<MerchantDebt | undefined> {
  const row = await db
    .selectFrom("merchant")
    .select(["deleted_at", owedTo.as("owed")])
    .where("id", "=", merchantId)
    .executeTakeFirst();
  return row && { deletedAt: row.deleted_at, owed: toOwed(row.owed) };
}

/** Deleted merchants of an account and mode with what each is owed, the last one deleted first. */
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

/** Writes down what an operator did, with whoever it was. */
export async function recordAction(
  { db, now }: Deps,
  args: { who: string; action: string; subject: string },
): Promise<void> {
  await db
    .insertInto("operator_action")
    .values({ ...args, at: now() })
    .execute();
}

/**
 * Makes every row of a payment that still owes work due at once, so that the sweep rings for it within a second: waiting
 * attempts, transfers that are ready (also when they were put off), a due settlement (also when its payouts are blocked:
 * the obstacle is checked again), a deadline that has passed. What has nothing to do any more stays as it is; doing it twice does no harm. Gives how many rows of each kind.
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
  const counts = {
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
  const made: Record<string, number> = {};
  for (const [kind, query] of Object.entries(counts))
    made[kind] = Number((await query.executeTakeFirst()).numUpdatedRows);
  if (made.settlements) await wakeSettlementQueue(db, payment.settlement_id ?? "");
  return made;
}

async function wakeSettlementQueue(db: Db, settlementId: string): Promise<void> {
  const row = await db
    .selectFrom("settlement")
    .select(["merchant_id as merchantId", "asset"])
    .where("id", "=", settlementId)
    .executeTakeFirst();
  if (row) await wakeSettlements(db, row);
}
