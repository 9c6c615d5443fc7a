import { inTransaction } from "../../db/in-transaction.ts";
import { lockAccount } from "../../db/queries/accounts.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  countMerchants,
  findOwnedMerchant,
  hasMerchant,
  hasNamesake,
  insertMerchant,
  listMerchantRows,
  listMissingMerchants,
  lockMerchant,
  type MerchantRow,
  markMerchantDeleted,
  type OwnedMerchant,
  updateMerchant,
} from "../../db/queries/merchants.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Caller } from "./callers.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * The account and mode that a merchant belongs to. `evenDeleted` includes deleted merchants, for operators: a deleted
 * merchant may still have a balance.
 */
export type Owner = Omit<OwnedMerchant, "merchantId">;
export type MerchantStatus = MerchantRow["status"];

/** A merchant's logo: the URL that the merchant gave, and the id of our copy. */
export type Icon = { url: string; logoId: string };

/** A merchant as its account sees it (specification, 2.7). */
export type MerchantView = {
  id: string;
  name: string;
  email: string;
  status: MerchantStatus;
  createdAt: Date;
  icon: Icon | null;
};

/**
 * Refuses with `merchant_exists` a name and e-mail address that another merchant of the account and mode has: most likely
 * the same shop was created before under another Idempotency-Key. Locks the account until the commit, so that of
 * concurrent calls one succeeds.
 * @param args.other the merchant that is changed; unset for a new one
 */
export async function findNamesakeRefusal(
  db: Db,
  args: Owner & { name: string; email: string; other?: string },
): Promise<Refusal | undefined> {
  await lockAccount(db, args.accountId);
  if (!(await hasNamesake(db, args))) return undefined;
  return refuse("merchant_exists", "a merchant with this name and e-mail address exists");
}

/** Returns true for a merchant that the caller reaches with a key of the other mode only. */
export async function isMerchantInOtherMode(
  { db }: Pick<Deps, "db">,
  { merchantId, caller }: { merchantId: string; caller: Pick<Caller, "accountId" | "mode" | "onlyMerchants"> },
): Promise<boolean> {
  const { accountId, onlyMerchants } = caller;
  const mode = caller.mode === "test" ? "live" : "test";
  return hasMerchant(db, { merchantId, accountId, mode, onlyMerchants });
}

/** Refuses with `merchant_not_found` merchants that the account and mode do not have. Names the place of the first one in `ids`. */
export async function refuseMissingMerchant(
  db: Db,
  { ids, ...owner }: Pick<Owner, "accountId" | "mode"> & { ids: readonly string[] },
): Promise<Refusal | undefined> {
  const [missing] = ids.length === 0 ? [] : await listMissingMerchants(db, { ...owner, ids });
  if (missing === undefined) return undefined;
  return refuse("merchant_not_found", `merchantIds.${ids.indexOf(missing)}: no such merchant`);
}

const noSuchMerchant = () => refuse("merchant_not_found", "no such merchant");

/** Creates a merchant in status `active` (specification, 2.7). */
export async function createMerchant(
  deps: Deps,
  args: Owner & { actor: AuditActor; name: string; email: string; icon?: Icon | null },
): Promise<MerchantView> {
  const { actor, accountId, mode } = args;
  const at = deps.now();
  return inTransaction(deps.db, async (db) => {
    const row = await insertMerchant(db, {
      id: newId("mrch", at),
      account_id: accountId,
      mode,
      name: args.name,
      email: args.email,
      icon_url: args.icon?.url ?? null,
      logo_id: args.icon?.logoId ?? null,
      created_at: at,
      deleted_at: null,
    });
    const after = { account: accountId, mode, ...toAudited(row) };
    await insertAuditEntries(db, [{ actor, action: "merchant.created", subject: row.id, before: null, after, at }]);
    return toMerchantView(row);
  });
}

/** Returns a merchant of this account and mode. Refuses with `merchant_not_found`. */
export async function findMerchant(
  deps: Pick<Deps, "db">,
  args: Owner & { merchantId: string },
): Promise<Result<MerchantView>> {
  const row = await findOwnedMerchant(deps.db, args);
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
  const totalCount = await countMerchants(deps.db, args);
  const rows = await listMerchantRows(deps.db, args, { after: after.value, limit: args.limit + 1 });
  const { items, nextCursor } = toPage(rows, args.limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ items: items.map(toMerchantView), nextCursor, totalCount });
}

/** Updates the given fields of a merchant. Refuses with `merchant_not_found`, and like `findNamesakeRefusal`. */
export async function changeMerchant(
  deps: Deps,
  args: Owner & {
    actor: AuditActor;
    merchantId: string;
    name?: string | undefined;
    email?: string | undefined;
    icon?: Icon | null | undefined;
    status?: MerchantStatus | undefined;
  },
): Promise<Result<MerchantView>> {
  const { name, email, icon, status } = args;
  const changes = {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(icon === undefined ? {} : { icon_url: icon?.url ?? null, logo_id: icon?.logoId ?? null }),
    ...(status === undefined ? {} : { status }),
  };
  return inTransaction(deps.db, async (db) => {
    // Lock order: account, then merchant (avoids deadlock).
    const isRenamed = name !== undefined || email !== undefined;
    if (isRenamed) await lockAccount(db, args.accountId);
    if (!(await lockMerchant(db, args))) return noSuchMerchant();
    const before = await findOwnedMerchant(db, args);
    if (!before) return noSuchMerchant();
    const named = { name: name ?? before.name, email: email ?? before.email, other: before.id };
    const taken = isRenamed ? await findNamesakeRefusal(db, { ...args, ...named }) : undefined;
    if (taken) return taken;
    const row = await updateMerchant(db, args, changes);
    if (!row) return noSuchMerchant();
    const entry = { actor: args.actor, action: "merchant.updated", subject: row.id, at: deps.now() };
    await insertAuditEntries(db, [{ ...entry, before: toAudited(before), after: toAudited(row) }]);
    return done(toMerchantView(row));
  });
}

/**
 * Deletes a merchant: it can create no payments and appears in no list. Its balance, and the money of payments in
 * progress, is still paid out (also below its minimum). Operators can still access it. Repeatable. Refuses with
 * `merchant_not_found`.
 */
export async function deleteMerchant(
  deps: Deps,
  args: Owner & { actor: AuditActor; merchantId: string },
): Promise<Result<{ id: string }>> {
  const { actor, merchantId: subject } = args;
  const at = deps.now();
  return inTransaction(deps.db, async (db) => {
    if (!(await markMerchantDeleted(db, args, at))) return noSuchMerchant();
    await insertAuditEntries(db, [{ actor, action: "merchant.deleted", subject, before: null, after: null, at }]);
    return done({ id: subject });
  });
}

/** Returns the members of a merchant that an audit entry shows. */
function toAudited({ name, email, status, icon_url: iconUrl, logo_id: logoId }: MerchantRow) {
  return { name, email, status, iconUrl, logoId };
}

function toMerchantView(row: MerchantRow): MerchantView {
  const { id, name, email, status, created_at: createdAt, icon_url: url, logo_id: logoId } = row;
  return { id, name, email, status, createdAt, icon: url === null || logoId === null ? null : { url, logoId } };
}
