import type { Generated } from "kysely";
import type { Mode } from "./column-types.ts";

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
    scopes: ("gateway" | "merchant" | "settlements:approve")[];
    created_at: Date;
    revoked_at: Date | null;
  };
  app_id: { id: string; account_id: string; mode: Mode; created_at: Date; revoked_at: Date | null };
  /** Origins that may frame the data page of an account's payments. */
  frame_origin: { account_id: string; origin: string; created_at: Date };
  /** `status` and `response_body` are null only inside the transaction that does the work. */
  idempotency: {
    account_id: string;
    mode: Mode;
    operation: string;
    key: string;
    digest: Buffer;
    status: number | null;
    response_body: string | null;
    created_at: Date;
  };
};
