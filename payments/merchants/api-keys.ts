import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import {
  findApiKeyRow,
  insertApiKey,
  insertKeyMaker,
  lockKeyFamily,
  lockLiveKey,
  markKeysRevoked,
  updateApiKey,
} from "../../db/queries/api-keys.ts";
import { insertAuditEntries, type JsonObject } from "../../db/queries/audit-entries.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { type ApiKeyView, toApiKeyView } from "./api-key-views.ts";
import { hashKey } from "./callers.ts";
import { type KeyManager, noSuchKey, toReach } from "./find-api-keys.ts";
import { refuseToEndFormer } from "./former-secrets.ts";
import { findExcess, readLimits, type WantedLimits } from "./key-limits.ts";
import { refuseMissingMerchant } from "./merchants.ts";

/** How long the former secret works after a rotation unless the call says otherwise, milliseconds. */
const OVERLAP_MS = 24 * 60 * 60_000;
/** The longest time for which it works, milliseconds. */
const LONGEST_OVERLAP_MS = 30 * 24 * 60 * 60_000;

type Deps = { db: Db; now: () => Date };

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
    if (!(await lockManager(db, args))) return revokedMeanwhile();
    const ids = args.onlyMerchants ?? limits.onlyMerchants ?? [];
    const missing = await refuseMissingMerchant(db, { accountId, mode, ids });
    if (missing) return missing;
    const key = makeKeyText(mode);
    const at = deps.now();
    const row = await insertApiKey(db, {
      id: newId("key", at),
      account_id: accountId,
      mode,
      ...secretColumns(key),
      scopes: [...limits.scopes],
      merchant_ids: limits.onlyMerchants && [...limits.onlyMerchants],
      allowed_cidrs: limits.allowedCidrs && [...limits.allowedCidrs],
      expires_at: limits.expiresAt,
      created_by: caller?.keyId ?? null,
      created_at: at,
    });
    if (caller?.keyId) await insertKeyMaker(db, { maker_id: caller.keyId, key_id: row.id });
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
 * now on when that time has come; a secret before it stops at once, which `keepsFormer` refuses while it works. Refuses with
 * `api_key_not_found`, with `invalid_state` for a key that is revoked or expired, and with `params_validation` for an overlap over
 * 30 days.
 */
export async function rotateApiKey(
  deps: Deps,
  args: KeyManager & { id: string; previousUntil?: Date | undefined; keepsFormer?: boolean },
): Promise<Result<IssuedKey>> {
  const at = deps.now();
  const previousUntil = args.previousUntil ?? new Date(at.getTime() + OVERLAP_MS);
  if (previousUntil.getTime() > at.getTime() + LONGEST_OVERLAP_MS)
    return refuse("params_validation", "previousUntil: is more than 30 days away");
  return inTransaction(deps.db, async (db) => {
    if (!(await lockManager(db, args))) return revokedMeanwhile();
    const before = await findApiKeyRow(db, { id: args.id, among: toReach(args.caller) }, { lock: true });
    if (!before) return noSuchKey(args.id);
    if (before.revoked_at) return refuse("invalid_state", "the key is revoked");
    if (before.expires_at && before.expires_at <= at) return refuse("invalid_state", "the key has expired");
    const ended = args.keepsFormer ? refuseToEndFormer(before.previous_until, at) : undefined;
    if (ended) return ended;
    const key = makeKeyText(before.mode);
    const row = await updateApiKey(db, before.id, {
      ...secretColumns(key),
      previous_hash: before.hash,
      previous_until: previousUntil,
    });
    if (args.caller?.keyId) await insertKeyMaker(db, { maker_id: args.caller.keyId, key_id: row.id });
    const entry = { action: "api_key.rotated", subject: row.id, before: describe(before), after: describe(row) };
    await audit({ ...deps, db }, args, entry);
    return done({ apiKey: toApiKeyView(row), key });
  });
}

/**
 * Revokes a key at once, with all of its secrets; with `withCreated` also every key that it has created or rotated, directly or
 * through others, although the key was rotated again since. Repeatable. Returns the ids of the keys that this call revoked. Refuses
 * with `api_key_not_found`.
 *
 * A key of the family may have been creating another one until its row was locked, so the family is revoked again until no key of it is
 * left. Each run commits: a run that unlocks a key which it has not revoked lets the calls that wait for the lock create the next ones.
 */
export async function revokeApiKey(
  deps: Deps,
  args: KeyManager & { id: string; withCreated: boolean },
): Promise<Result<{ apiKey: ApiKeyView; revoked: string[] }>> {
  const revoked: string[] = [];
  for (;;) {
    const run = await inTransaction(deps.db, (db) => revokeFamily({ ...deps, db }, args));
    if (!run.ok) return run;
    revoked.push(...run.value.revoked);
    if (run.value.revoked.length === 0 || !args.withCreated)
      return done({ apiKey: run.value.apiKey, revoked: revoked.toSorted() });
  }
}

/** Revokes the keys of a family that have committed. The caller has a transaction. */
async function revokeFamily(
  { db, now }: Deps,
  args: KeyManager & { id: string; withCreated: boolean },
): Promise<Result<{ apiKey: ApiKeyView; revoked: string[] }>> {
  const one = { id: args.id, among: toReach(args.caller) };
  if (!(await findApiKeyRow(db, one))) return noSuchKey(args.id);
  const ids = await lockKeyFamily(db, args);
  const at = now();
  const revoked = await markKeysRevoked(db, { ids, at });
  const change = { action: "api_key.revoked", before: { revokedAt: null }, after: { revokedAt: at.toISOString() } };
  await audit({ db, now }, args, ...revoked.map((subject) => ({ ...change, subject })));
  const row = await findApiKeyRow(db, one);
  return row ? done({ apiKey: toApiKeyView(row), revoked }) : noSuchKey(args.id);
}

/**
 * Locks the caller's key until the commit. Returns false when it is revoked. Without the lock, a key could create another
 * one, or get another one's new secret, while it is being revoked together with the keys that it has created.
 */
async function lockManager(db: Db, { caller, id }: KeyManager & { id?: string }): Promise<boolean> {
  if (!caller?.keyId) return true;
  return lockLiveKey(db, { id: caller.keyId, with: id });
}

const revokedMeanwhile = () => refuse("invalid_api_key", "the API key was revoked during the call");

const makeKeyText = (mode: Mode) => `${mode === "test" ? "svc_test_" : "svc_"}${randomBytes(32).toString("hex")}`;

/** Returns what is stored of a key's text. */
function secretColumns(key: string) {
  return { hash: hashKey(key), hint: key.slice(-4) };
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
  const { hint, scopes, merchantIds, allowedCidrs, expiresAt, previousUntil } = toApiKeyView(row);
  const times = { expiresAt: expiresAt?.toISOString() ?? null, previousUntil: previousUntil?.toISOString() ?? null };
  return {
    account: row.account_id,
    mode: row.mode,
    hint,
    scopes,
    merchantIds,
    allowedCidrs,
    ...times,
  };
}
