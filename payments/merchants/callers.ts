import { hash } from "node:crypto";
import { type ApiKeyRow, findApiKeyByHash as readApiKey } from "../../db/queries/api-keys.ts";
import { findLiveAppId as readAppId } from "../../db/queries/app-ids.ts";
import type { Mode } from "../../db/tables.ts";
import { isInCidrs } from "../../runtime/cidrs.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { CredentialCache } from "./credential-cache.ts";
import type { KeyLimits } from "./key-limits.ts";

/** The authenticated caller of a request and what it may do. */
export type Caller = KeyLimits & {
  accountId: string;
  mode: Mode;
  /** The API key of the request; null for an app id, which every user of the app shares. */
  keyId: string | null;
  /** When the key was last used before, as far as it is stored. */
  lastUsedAt: Date | null;
  /** API version that the account is pinned to. */
  version: string;
};

/**
 * Returns the caller that an API key belongs to. Refuses with `invalid_api_key` a key that is unknown, revoked, replaced
 * or expired, and with `forbidden` a caller at an address from which the key may not be used. No message has the key.
 * @param cache how keys are read; from the database when unset
 */
export async function findCallerByKey(
  deps: Pick<PaymentDeps, "db" | "now">,
  { key, address }: { key: string; address: string },
  { findApiKeyByHash = readApiKey }: Partial<CredentialCache> = {},
): Promise<Result<Caller>> {
  const hash = hashKey(key);
  const row = await findApiKeyByHash(deps.db, hash);
  if (!row) return refuse("invalid_api_key", "the API key is not known");
  const ended = describeEnd(row, { hash, now: deps.now() });
  if (ended) return refuse("invalid_api_key", ended);
  if (row.allowed_cidrs && !isInCidrs(address, row.allowed_cidrs))
    return refuse("forbidden", "the API key may not be used from this address");
  const { account_id: accountId, mode, id: keyId, last_used_at: lastUsedAt, api_version: version } = row;
  return done({ accountId, mode, keyId, lastUsedAt, version, ...limitsOf(row) });
}

/** Returns why a key with this hash no longer works, as an API error message; undefined while it works. */
export function describeEnd(
  row: Pick<ApiKeyRow, "hash" | "previous_until" | "expires_at" | "revoked_at">,
  { hash, now }: { hash: Buffer; now: Date },
): string | undefined {
  if (row.revoked_at) return `the API key was revoked at ${row.revoked_at.toISOString()}`;
  if (row.expires_at && row.expires_at <= now) return `the API key expired at ${row.expires_at.toISOString()}`;
  if (!row.hash.equals(hash) && row.previous_until && row.previous_until <= now)
    return `the API key was replaced; the former one worked until ${row.previous_until.toISOString()}`;
  return undefined;
}

/** Returns the limits of a stored key. */
function limitsOf(row: ApiKeyRow): KeyLimits {
  const { scopes, merchant_ids: onlyMerchants, allowed_cidrs: allowedCidrs, expires_at: expiresAt } = row;
  return { scopes, onlyMerchants, allowedCidrs, expiresAt };
}

/**
 * Returns the caller that an app id belongs to; undefined for an unknown or revoked app id.
 * @param cache how app ids are read; from the database when unset
 */
export async function findCallerByApp(
  deps: Pick<PaymentDeps, "db">,
  appId: string,
  { findLiveAppId = readAppId }: Partial<CredentialCache> = {},
): Promise<Caller | undefined> {
  const row = await findLiveAppId(deps.db, appId);
  if (!row) return undefined;
  const { account_id: accountId, mode, api_version: version } = row;
  const limits = { scopes: ["gateway"], onlyMerchants: null, allowedCidrs: null, expiresAt: null } as const;
  return { accountId, mode, keyId: null, lastUsedAt: null, version, ...limits };
}

/** Returns what is stored of a key's text. A plain hash is enough: 256 random bits cannot be guessed. */
export function hashKey(key: string): Buffer {
  return hash("sha256", key, "buffer");
}
