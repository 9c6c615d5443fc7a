import type { Generated } from "kysely";
import type { Mode, Optional } from "./column-types.ts";

/** What an API key may do; see payments/merchants/scopes.ts. */
export type Scope =
  | "gateway"
  | "payments:read"
  | "payments:write"
  | "refunds"
  | "merchants"
  | "settlements"
  | "settlements:approve"
  | "webhooks"
  | "keys";

export type AccountTables = {
  account: {
    id: string;
    name: string;
    api_version: Generated<string>;
    /** Wallets and checkout pages may cancel the account's payments. */
    wallet_cancellation_allowed: Generated<boolean>;
    /** How long a change of a merchant's destination waits before it applies, hours. */
    destination_waiting_hours: Generated<number>;
    created_at: Date;
  };
  api_key: {
    id: string;
    account_id: string;
    mode: Mode;
    hash: Buffer;
    hint: string;
    /** The secret before the last rotation, and the time until which it works. */
    previous_hash: Optional<Buffer>;
    previous_until: Optional<Date>;
    scopes: Scope[];
    /** The only merchants that the key reaches; null: all of the account and mode. */
    merchant_ids: string[] | null;
    /** The only ranges of addresses that the key works from; null: any address. */
    allowed_cidrs: string[] | null;
    expires_at: Date | null;
    /** The key that created this one; null: an operator did. */
    created_by: string | null;
    created_at: Date;
    revoked_at: Optional<Date>;
    last_used_at: Optional<Date>;
    last_used_address: Optional<string>;
  };
  /** The keys that have made a secret of a key, also of one that has ended. */
  api_key_maker: { maker_id: string; key_id: string };
  app_id: { id: string; account_id: string; mode: Mode; created_at: Date; revoked_at: Date | null };
  /** Origins that may frame the data page of an account's payments. */
  frame_origin: { account_id: string; origin: string; created_at: Date };
  /** `status` and `response_body` are null only inside the transaction that does the work. */
  idempotency: {
    account_id: string;
    mode: Mode;
    /** The merchant that the request names; empty for a request that names none. */
    merchant_id: string;
    operation: string;
    key: string;
    digest: Buffer;
    status: number | null;
    response_body: string | null;
    created_at: Date;
  };
};
