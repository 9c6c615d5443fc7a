import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import { lockAccount } from "../../db/queries/accounts.ts";
import { type AppIdRow, countLiveAppIds, insertAppId, listAppIdRows, revokeAppId } from "../../db/queries/app-ids.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { findExcess, type KeyLimits } from "./key-limits.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** App ids of an account and mode that work at the same time. */
const MAX_APP_IDS = 100;

export type AppIdView = { id: string; mode: Mode; createdAt: Date; revokedAt: Date | null };

/** What an app id may do, as limits of a key: the gateway, for every payment, from any address, until it is revoked. */
const granted: KeyLimits = { scopes: ["gateway"], onlyMerchants: null, allowedCidrs: null, expiresAt: null };

/**
 * Creates a public app id for wallets. It grants access to the gateway only. A caller with a key creates only what the key
 * can do itself: refuses with `forbidden` a key that lacks the scope `gateway` or has another limit, with `params_validation` an
 * unknown account, and with `invalid_state` one app id too many.
 */
export async function createAppId(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; mode: Mode; caller?: KeyLimits },
): Promise<Result<AppIdView>> {
  const { actor, accountId, mode, caller } = args;
  const excess = caller && findExcess(caller, granted);
  if (excess) return refuse("forbidden", `an app id has no limits but its scope gateway; ${excess}`);
  const id = randomBytes(16).toString("hex");
  const createdAt = deps.now();
  return inTransaction(deps.db, async (db) => {
    if (!(await lockAccount(db, accountId))) return refuse("params_validation", "accountId: there is no such account");
    if ((await countLiveAppIds(db, { accountId, mode })) >= MAX_APP_IDS)
      return refuse("invalid_state", `the account has ${MAX_APP_IDS} app ids in this mode, which is the most`);
    await insertAppId(db, { id, account_id: accountId, mode, created_at: createdAt, revoked_at: null });
    const after = { account: accountId, mode };
    const entry = { actor, action: "app_id.created", subject: id, before: null, after, at: createdAt };
    await insertAuditEntries(db, [entry]);
    return done({ id, mode, createdAt, revokedAt: null });
  });
}

/** Lists the app ids of an account, the newest first, also revoked ones. Refuses an invalid cursor. */
export async function listAppIds(
  { db }: Pick<Deps, "db">,
  args: { accountId: string; mode?: Mode; cursor?: string | undefined; limit: number },
): Promise<Result<Page<AppIdView>>> {
  const after = readCursor(args.cursor, "time");
  if (!after.ok) return after;
  const rows = await listAppIdRows(db, { ...args, after: after.value, limit: args.limit + 1 });
  const page = toPage(rows, args.limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ ...page, items: page.items.map(toView) });
}

/**
 * Revokes an app id at once. Repeatable. Refuses with `app_id_not_found` when there is none; with `owner`, also for one of
 * another account or mode.
 */
export async function revokeApp(
  { db, now }: Deps,
  { actor, id, owner }: { actor: AuditActor; id: string; owner?: { accountId: string; mode: Mode } },
): Promise<Result<AppIdView>> {
  const at = now();
  return inTransaction(db, async (own) => {
    const row = await revokeAppId(own, { id, at, owner });
    if (!row) return refuse("app_id_not_found", "no such app id");
    await insertAuditEntries(own, [{ actor, action: "app_id.revoked", subject: id, before: null, after: null, at }]);
    return done(toView(row));
  });
}

function toView({ id, mode, created_at: createdAt, revoked_at: revokedAt }: AppIdRow): AppIdView {
  return { id, mode, createdAt, revokedAt };
}
