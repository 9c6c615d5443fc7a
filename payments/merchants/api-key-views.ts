import type { ApiKeyRow } from "../../db/queries/api-keys.ts";
import type { Mode } from "../../db/tables.ts";
import type { Scope } from "./scopes.ts";

/** An API key as its account and its operator see it: never its text, of which only the last four characters are kept. */
export type ApiKeyView = {
  id: string;
  mode: Mode;
  hint: string;
  scopes: readonly Scope[];
  merchantIds: readonly string[] | null;
  allowedCidrs: readonly string[] | null;
  expiresAt: Date | null;
  /** The key that created it; null: an operator did. */
  createdBy: string | null;
  createdAt: Date;
  revokedAt: Date | null;
  /** Until when the secret before the last rotation works. */
  previousUntil: Date | null;
  /** Stored at most once a minute. */
  lastUsedAt: Date | null;
  lastUsedAddress: string | null;
};

/** Converts a row to the view of a key. */
export function toApiKeyView(row: ApiKeyRow): ApiKeyView {
  return {
    id: row.id,
    mode: row.mode,
    hint: row.hint,
    scopes: row.scopes,
    merchantIds: row.merchant_ids,
    allowedCidrs: row.allowed_cidrs,
    expiresAt: row.expires_at,
    createdBy: row.created_by,
    createdAt: row.created_at,
    revokedAt: row.revoked_at,
    previousUntil: row.previous_until,
    lastUsedAt: row.last_used_at,
    lastUsedAddress: row.last_used_address,
  };
}
