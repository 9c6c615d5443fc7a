import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import {
  findApiKeyRow,
  insertApiKey,
  type KeysWithin,
  listAccountKeys,
  listApiKeyRows,
  markKeysRevoked,
  updateApiKey,
} from "../../db/queries/api-keys.ts";
import { type AuditActor, insertAuditEntries, type JsonObject } from "../../db/queries/audit-entries.ts";
import { listMissingMerchants } from "../../db/queries/merchants.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { canonicalCidr } from "../../runtime/cidrs.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import { type ApiKeyView, toApiKeyView } from "./api-key-views.ts";
import { deriveApprovalKey } from "./approval-keys.ts";
import { type Caller, hashKey } from "./callers.ts";
import { findExcess, type KeyLimits } from "./key-limits.ts";
import type { Scope } from "./scopes.ts";

/** How long the former secret works after a rotation unless the call says otherwise, milliseconds. */
const OVERLAP_MS = 24 * 60 * 60_000;
/** The longest time for which it works, milliseconds. */
const LONGEST_OVERLAP_MS = 30 * 24 * 60 * 60_000;

type Deps = { db: Db; now: () => Date };

/**
 * Who manages keys: an operator, or a caller of the API. A caller reaches only the keys of their account and mode that can
 * do nothing that their own key cannot do; any other key does not exist for them.
 */
type KeyManager = { actor: AuditActor; caller?: Caller | undefined };

/** The limits of a new key. Undefined: the caller's own limit. */
type WantedLimits = Pick<KeyLimits, "scopes"> & {
  [Limit in Exclude<keyof KeyLimits, "scopes">]?: KeyLimits[Limit] | undefined;
};

/** A key and its text, which is returned once and never stored. */
export type IssuedKey = { apiKey: ApiKeyView; key: string };

/**
 * Creates an API key. Its prefix names the mode (specification, part 5). A limit that is left out is the caller's own.
 * Refuses with `params_validation`, with `merchant_not_found` for a merchant that the account and mode do not have, and
 * with `forbidden` for a key that could do more than the caller's.
 */
export async function createApiKey(
  deps: Deps,
  args: KeyManager & { accountId: string; mode: Mode } & WantedLimits,
): Promise<Result<IssuedKey>> {
  const { accountId, mode, caller } = args;
  const wanted = readLimits(deps, args, caller);
  if (!wanted.ok) return wanted;
  const limits = wanted.value;
  const excess = caller && findExcess(caller, limits);
  if (excess) return refuse("forbidden", excess);
  return inTransaction(deps.db, async (db) => {
    const ids = limits.onlyMerchants ?? [];
    const [missing] = ids.length === 0 ? [] : await listMissingMerchants(db, { accountId, mode, ids });
    if (missing !== undefined) return refuse("merchant_not_found", `merchantIds: there is no merchant ${missing}`);
    const key = makeKeyText(mode);
    const row = await insertApiKey(db, {
      id: newId("key"),
      account_id: accountId,
      mode,
      ...secretColumns(key, limits.scopes),
      scopes: [...limits.scopes],
      merchant_ids: limits.onlyMerchants && [...limits.onlyMerchants],
      allowed_cidrs: limits.allowedCidrs && [...limits.allowedCidrs],
      expires_at: limits.expiresAt,
      created_by: caller?.keyId ?? null,
      created_at: deps.now(),
    });
    await audit({ ...deps, db }, args, {
      action: "api_key.created",
      subject: row.id,
      before: null,
      after: describe(row),
    });
    return done({ apiKey: toApiKeyView(row), key });
  });
}

/**
 * Gives a key a new secret. The former secret works until `previousUntil`, by default for 24 hours, and not at all from
 * now on when that time has come; a secret before it stops at once. Refuses with `api_key_not_found`, with
 * `invalid_state` for a key that is revoked or expired, and with `params_validation` for an overlap over 30 days.
 */
export async function rotateApiKey(
  deps: Deps,
  args: KeyManager & { id: string; previousUntil?: Date | undefined },
): Promise<Result<IssuedKey>> {
  const at = deps.now();
  const previousUntil = args.previousUntil ?? new Date(at.getTime() + OVERLAP_MS);
  if (previousUntil.getTime() > at.getTime() + LONGEST_OVERLAP_MS)
    return refuse("params_validation", "previousUntil: is more than 30 days away");
  return inTransaction(deps.db, async (db) => {
    const before = await findApiKeyRow(db, { id: args.id, among: reachOf(args) }, { lock: true });
    if (!before) return noSuchKey(args.id);
    if (before.revoked_at) return refuse("invalid_state", "the key is revoked");
    if (before.expires_at && before.expires_at <= at) return refuse("invalid_state", "the key has expired");
    const key = makeKeyText(before.mode);
    const row = await updateApiKey(db, before.id, {
      ...secretColumns(key, before.scopes),
      previous_hash: before.hash,
      previous_until: previousUntil,
    });
    const entry = { action: "api_key.rotated", subject: row.id, before: describe(before), after: describe(row) };
    await audit({ ...deps, db }, args, entry);
    return done({ apiKey: toApiKeyView(row), key });
  });
}

/**
 * Revokes a key at once, with all of its secrets; with `withCreated` also every key that it created, directly or through
 * others. Repeatable. Returns the ids of the keys that this call revoked. Refuses with `api_key_not_found`.
 */
export async function revokeApiKey(
  deps: Deps,
  args: KeyManager & { id: string; withCreated: boolean },
): Promise<Result<{ apiKey: ApiKeyView; revoked: string[] }>> {
  return inTransaction(deps.db, async (db) => {
    const before = await findApiKeyRow(db, { id: args.id, among: reachOf(args) }, { lock: true });
    if (!before) return noSuchKey(args.id);
    const at = deps.now();
    const revoked = await markKeysRevoked(db, { ...args, at });
    const change = { action: "api_key.revoked", before: { revokedAt: null }, after: { revokedAt: at.toISOString() } };
    await audit({ ...deps, db }, args, ...revoked.map((subject) => ({ ...change, subject })));
    return done({ apiKey: toApiKeyView({ ...before, revoked_at: before.revoked_at ?? at }), revoked });
  });
}

/** Returns a key. Refuses with `api_key_not_found`. */
export async function findApiKey(
  deps: Pick<Deps, "db">,
  args: Pick<KeyManager, "caller"> & { id: string },
): Promise<Result<ApiKeyView>> {
  const row = await findApiKeyRow(deps.db, { id: args.id, among: reachOf(args) });
  return row ? done(toApiKeyView(row)) : noSuchKey(args.id);
}

/** Lists the keys that a caller may manage, newest first, also revoked ones. */
export async function listApiKeys(
  deps: Pick<Deps, "db">,
  caller: Caller,
  { cursor, limit }: { cursor?: string | undefined; limit: number },
): Promise<Result<Page<ApiKeyView>>> {
  const after = readCursor(cursor, "time");
  if (!after.ok) return after;
  const rows = await listApiKeyRows(deps.db, toReach(caller), { after: after.value, limit: limit + 1 });
  const { items, nextCursor } = toPage(rows, limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ items: items.map(toApiKeyView), nextCursor });
}

/** Lists all keys of an account, newest first, for operators. */
export async function listKeysOfAccount({ db }: Pick<Deps, "db">, accountId: string): Promise<ApiKeyView[]> {
  return (await listAccountKeys(db, accountId)).map(toApiKeyView);
}

const noSuchKey = (id: string) => refuse("api_key_not_found", `there is no key ${id}`);

const reachOf = ({ caller }: Pick<KeyManager, "caller">) => caller && toReach(caller);

function toReach({ accountId, mode, scopes, onlyMerchants, allowedCidrs, expiresAt }: Caller): KeysWithin {
  const within = {
    scopes: [...scopes],
    merchant_ids: onlyMerchants && [...onlyMerchants],
    allowed_cidrs: allowedCidrs && [...allowedCidrs],
    expires_at: expiresAt,
  };
  return { accountId, mode, within };
}

function readLimits({ now }: Pick<Deps, "now">, given: WantedLimits, caller: Caller | undefined): Result<KeyLimits> {
  const { onlyMerchants = caller?.onlyMerchants ?? null, expiresAt = caller?.expiresAt ?? null } = given;
  const { allowedCidrs: ranges = caller?.allowedCidrs ?? null } = given;
  if (given.scopes.length === 0) return refuse("params_validation", "scopes: expected at least one scope");
  if (onlyMerchants?.length === 0) return refuse("params_validation", "merchantIds: expected at least one merchant");
  if (ranges?.length === 0) return refuse("params_validation", "allowedCidrs: expected at least one range");
  if (expiresAt && expiresAt <= now()) return refuse("params_validation", "expiresAt: is not in the future");
  const canonical = ranges?.map(canonicalCidr) ?? [];
  const invalid = canonical.indexOf(undefined);
  if (invalid >= 0)
    return refuse(
      "params_validation",
      `allowedCidrs.${invalid}: expected a range such as 192.0.2.0/24 or 2001:db8::/32`,
    );
  return done({
    scopes: [...new Set(given.scopes)],
    onlyMerchants: onlyMerchants && [...new Set(onlyMerchants)],
    allowedCidrs: ranges && [...new Set(canonical.filter((cidr) => cidr !== undefined))],
    expiresAt,
  });
}

const makeKeyText = (mode: Mode) => `${mode === "test" ? "svc_test_" : "svc_"}${randomBytes(32).toString("hex")}`;

/** Returns what is stored of a key's text. */
function secretColumns(key: string, scopes: readonly Scope[]) {
  const approval_public_key = scopes.includes("settlements:approve") ? deriveApprovalKey(key).publicKey : null;
  return { hash: hashKey(key), hint: key.slice(-4), approval_public_key };
}

function audit(
  { db, now }: Deps,
  { actor }: KeyManager,
  ...changes: { action: string; subject: string; before: JsonObject | null; after: JsonObject | null }[]
): Promise<void> {
  return insertAuditEntries(
    db,
    changes.map((change) => ({ ...change, actor, at: now() })),
  );
}

/** Returns what the audit log says of a key. */
function describe(row: Parameters<typeof toApiKeyView>[0]): JsonObject {
  const { hint, scopes, merchantIds, allowedCidrs, expiresAt, approvalPublicKey, previousUntil } = toApiKeyView(row);
  const times = { expiresAt: expiresAt?.toISOString() ?? null, previousUntil: previousUntil?.toISOString() ?? null };
  return {
    account: row.account_id,
    mode: row.mode,
    hint,
    scopes,
    merchantIds,
    allowedCidrs,
    approvalPublicKey,
    ...times,
  };
}
