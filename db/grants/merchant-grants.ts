import type { MerchantTables } from "../tables/merchant-tables.ts";
import { append, type GrantsOf, read, readers, writeAndDelete } from "./privileges.ts";

/** A requested change of a destination can be decided and applied, but not become another change. Workers report it. */
const requested = {
  select: "all",
  insert: [
    "id",
    "merchant_id",
    "destination_id",
    "asset",
    "given_asset",
    "before",
    "after",
    "state",
    "requester_kind",
    "requester_id",
    "requester_address",
    "created_at",
    "applies_at",
    "decider_kind",
    "decider_id",
    "decider_address",
    "decided_at",
    "rejection",
    "applied_at",
  ],
  update: ["state", "decider_kind", "decider_id", "decider_address", "decided_at", "rejection", "applied_at"],
} as const;

/** The columns that the revocation of an approval key changes. */
const revoked = ["revoked_at", "revoker_kind", "revoker_id", "revoker_address", "reported_at"] as const;

/** The columns of a merchant that the operator console shows. */
const shownMerchant = [
  "id",
  "account_id",
  "mode",
  "name",
  "status",
  "payouts_held_at",
  "created_at",
  "deleted_at",
] as const;

/** The columns of a signed statement that hold no signature. */
const readableStatement = ["id", "subject", "text", "signer", "created_at", "reported_at", "outcome"] as const;

export const merchantGrants: GrantsOf<MerchantTables> = {
  logo: { ...readers, api: append },
  merchant: {
    ...readers,
    api: {
      select: "all",
      insert: [
        "id",
        "account_id",
        "mode",
        "name",
        "email",
        "status",
        "icon_url",
        "logo_id",
        "created_at",
        "deleted_at",
      ],
      update: ["name", "email", "status", "icon_url", "logo_id", "deleted_at"],
    },
    worker: { select: "all", update: ["payouts_held_at"] },
    board: { select: shownMerchant },
    admin: { ...append, update: ["name", "email", "status", "icon_url", "logo_id", "payouts_held_at", "deleted_at"] },
  },
  // A trigger writes the account of each change that applies. Operators set how it is paid.
  settlement_destination: {
    ...readers,
    admin: {
      select: "all",
      update: ["accumulation_ms", "accumulation_amount", "minimum", "direct", "accepts_other_assets", "updated_at"],
    },
  },
  destination_change: {
    api: requested,
    // Applies what was requested, and requests nothing.
    worker: { select: "all", update: ["state", "applied_at", "reported_at"] },
    admin: requested,
    reader: read,
  },
  // What operators and merchants have signed for the signer, and the keys of the merchants.
  signed_statement: {
    api: { select: readableStatement, insert: "all" },
    worker: { select: "all", update: ["reported_at", "outcome"] },
    admin: append,
    reader: { select: readableStatement },
  },
  approval_key: {
    ...readers,
    api: { ...append, update: revoked },
    worker: { select: "all", update: ["reported_at"] },
    admin: { ...append, update: revoked },
  },
  fee_policy: { ...readers, admin: writeAndDelete },
  collection_policy: { ...readers, admin: { ...append, delete: true } },
};
