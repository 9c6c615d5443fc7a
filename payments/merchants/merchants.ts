import { type ExpressionBuilder, type Selectable, sql, type Transaction } from "kysely";
import type { Db, Mode, Tables } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * The account and mode that a merchant belongs to. `evenDeleted` includes deleted merchants, for operators: a deleted
 * merchant may still have a balance.
 */
export type Owner = { accountId: string; mode: Mode; evenDeleted?: true };
export type MerchantStatus = "active" | "inactive" | "suspended";

/** A merchant as its account sees it (specification, 2.7). `logoId` is the id of our copy of its logo. */
export type MerchantView = {
  id: string;
  name: string;
  email: string;
  status: MerchantStatus;
  createdAt: Date;
  logoId: string | null;
};

const noSuchMerchant = () => refuse("merchant_not_found", "no such merchant");

/** Creates a merchant in status `active` (specification, 2.7). */
export async function createMerchant(
  deps: Deps,
  args: Owner & { name: string; email: string; logoId?: string | null },
): Promise<MerchantView> {
  const row = await deps.db
    .insertInto("merchant")
    .values({
      id: newId("mrch"),
      account_id: args.accountId,
      mode: args.mode,
      name: args.name,
      email: args.email,
      logo_id: args.logoId ?? null,
      created_at: deps.now(),
      deleted_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return toMerchantView(row);
}

/** Returns a merchant of this account and mode. Refuses with `merchant_not_found`. */
export async function findMerchant(
  deps: Pick<Deps, "db">,
  args: Owner & { merchantId: string },
): Promise<Result<MerchantView>> {
  const row = await deps.db.selectFrom("merchant").selectAll().where(isOwned(args)).executeTakeFirst();
  return row ? done(toMerchantView(row)) : noSuchMerchant();
}

/**
 * Lists the merchants of an account, newest first. `search` matches a part of the name or the whole id. `cursor` is the
 * previous page's `nextCursor`. Refuses with `params_validation` for an invalid cursor.
 */
export async function listMerchants(
  deps: Pick<Deps, "db">,
  args: Owner & {
    status?: MerchantStatus | undefined;
    search?: string | undefined;
    cursor?: string | undefined;
    limit: number;
  },
): Promise<Result<Page<MerchantView> & { totalCount: number }>> {
  const after = readCursor(args.cursor, "time");
  if (!after.ok) return after;
  let matching = deps.db
    .selectFrom("merchant")
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .where("deleted_at", "is", null);
  const { status, search } = args;
  if (status) matching = matching.where("status", "=", status);
  if (search)
    matching = matching.where((where) =>
      where.or([where("id", "=", search), sql<boolean>`position(lower(${search}) in lower(name)) > 0`]),
    );
  const { count } = await matching.select(({ fn }) => fn.countAll<number>().as("count")).executeTakeFirstOrThrow();
  let page = matching
    .selectAll()
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(args.limit + 1);
  if (after.value)
    page = page.where(sql<boolean>`(created_at, id) < (${after.value[0]}::timestamptz, ${after.value[1]})`);
  const rows = await page.execute();
  const { items, nextCursor } = toPage(rows, args.limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ items: items.map(toMerchantView), nextCursor, totalCount: Number(count) });
}

/** Updates the given fields of a merchant. Refuses with `merchant_not_found`. */
export async function changeMerchant(
  deps: Pick<Deps, "db">,
  args: Owner & {
    merchantId: string;
    name?: string | undefined;
    email?: string | undefined;
    logoId?: string | null | undefined;
    status?: MerchantStatus | undefined;
  },
): Promise<Result<MerchantView>> {
  const { name, email, logoId, status } = args;
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(logoId === undefined ? {} : { logo_id: logoId }),
    ...(status === undefined ? {} : { status }),
  };
  const row = await deps.db.updateTable("merchant").set(changes).where(isOwned(args)).returningAll().executeTakeFirst();
  return row ? done(toMerchantView(row)) : noSuchMerchant();
}

/**
 * Deletes a merchant: it can create no payments and appears in no list. Its balance, and the money of payments in
 * progress, is still paid out (also below its minimum). Operators can still access it. Repeatable. Refuses with
 * `merchant_not_found`.
 */
export async function deleteMerchant(
  deps: Deps,
  args: Owner & { merchantId: string },
): Promise<Result<{ id: string }>> {
  const row = await deps.db
    .updateTable("merchant")
    .set({ deleted_at: sql`coalesce(deleted_at, ${deps.now()})` })
    .where("id", "=", args.merchantId)
    .where("account_id", "=", args.accountId)
    .where("mode", "=", args.mode)
    .returning("id")
    .executeTakeFirst();
  return row ? done(row) : noSuchMerchant();
}

/** Returns true if the merchant belongs to this account and mode, and is not deleted or the owner has `evenDeleted`. */
export async function isOwnMerchant(db: Db, args: Owner & { merchantId: string }): Promise<boolean> {
  const row = await db.selectFrom("merchant").select("id").where(isOwned(args)).executeTakeFirst();
  return row !== undefined;
}

/**
 * Checks the owner as `isOwnMerchant` does, and locks the merchant's row until the transaction ends. Other transactions
 * cannot change the merchant or its destinations meanwhile, but can create payments.
 */
export async function lockMerchant(db: Transaction<Tables>, args: Owner & { merchantId: string }): Promise<boolean> {
  const row = await db.selectFrom("merchant").select("id").where(isOwned(args)).forNoKeyUpdate().executeTakeFirst();
  return row !== undefined;
}

const isOwned =
  ({ accountId, mode, merchantId, evenDeleted }: Owner & { merchantId: string }) =>
  (where: ExpressionBuilder<Tables, "merchant">) => {
    const owned = where.and({ id: merchantId, account_id: accountId, mode });
    return evenDeleted ? owned : owned.and("deleted_at", "is", null);
  };

function toMerchantView(row: Selectable<Tables["merchant"]>): MerchantView {
  const { id, name, email, status, created_at: createdAt, logo_id: logoId } = row;
  return { id, name, email, status, createdAt, logoId };
}
