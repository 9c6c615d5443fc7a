import { findApiKeyRow, type KeysWithin, listAccountKeys, listApiKeyRows } from "../../db/queries/api-keys.ts";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import { type ApiKeyView, toApiKeyView } from "./api-key-views.ts";
import type { Caller } from "./callers.ts";

type Deps = { db: Db };

/**
 * Who manages keys: an operator, or a caller of the API. A caller reaches only the keys of their account and mode that can
 * do nothing that their own key cannot do; any other key does not exist for them.
 */
export type KeyManager = { actor: AuditActor; caller?: Caller | undefined };

/** Returns a key. Refuses with `api_key_not_found`. */
export async function findApiKey(
  deps: Deps,
  args: Pick<KeyManager, "caller"> & { id: string },
): Promise<Result<ApiKeyView>> {
  const row = await findApiKeyRow(deps.db, { id: args.id, among: toReach(args.caller) });
  return row ? done(toApiKeyView(row)) : noSuchKey(args.id);
}

/** Lists the keys that a caller may manage, newest first, also revoked ones. */
export async function listApiKeys(
  deps: Deps,
  { caller, cursor, limit }: { caller: Caller; cursor?: string | undefined; limit: number },
): Promise<Result<Page<ApiKeyView>>> {
  const after = readCursor(cursor, "time");
  if (!after.ok) return after;
  const rows = await listApiKeyRows(deps.db, toReach(caller), { after: after.value, limit: limit + 1 });
  const { items, nextCursor } = toPage(rows, limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ items: items.map(toApiKeyView), nextCursor });
}

/** Lists all keys of an account, newest first, for operators. */
export async function listKeysOfAccount({ db }: Deps, accountId: string): Promise<ApiKeyView[]> {
  return (await listAccountKeys(db, accountId)).map(toApiKeyView);
}

/** Refuses a key that does not exist, or that the caller does not reach. */
export const noSuchKey = (id: string) =>
  refuse(
    "api_key_not_found",
    // People who end a leaked key paste the key itself.
    id.startsWith("key_") ? `there is no key ${id}` : "expected the id of a key (key_…), not the key itself",
  );

/** Returns which keys a caller reaches; undefined for an operator, who reaches all. */
export function toReach(caller: Caller): KeysWithin;
export function toReach(caller: Caller | undefined): KeysWithin | undefined;
export function toReach(caller: Caller | undefined): KeysWithin | undefined {
  if (!caller) return undefined;
  const { accountId, mode, scopes, onlyMerchants, allowedCidrs, expiresAt } = caller;
  const within = {
    scopes: [...scopes],
    merchant_ids: onlyMerchants && [...onlyMerchants],
    allowed_cidrs: allowedCidrs && [...allowedCidrs],
    expires_at: expiresAt,
  };
  return { accountId, mode, within };
}
