import { accountGrants } from "./grants/account-grants.ts";
import { chainGrants } from "./grants/chain-grants.ts";
import { ledgerGrants } from "./grants/ledger-grants.ts";
import { merchantGrants } from "./grants/merchant-grants.ts";
import { paymentGrants } from "./grants/payment-grants.ts";
import { type GrantsOf, read, readers } from "./grants/privileges.ts";
import { transferGrants } from "./grants/transfer-grants.ts";
import { webhookGrants } from "./grants/webhook-grants.ts";
import type { Tables } from "./tables.ts";

/** Kysely's own tables. Every process compares the migrations that have run with those of its release. */
type MigrationTables = { kysely_migration: { name: string; timestamp: string }; kysely_migration_lock: object };

/**
 * Which role may do what with which table. Every migration applies it, and takes away everything else. A role without an
 * entry may not even read the table. The reasons are in docs/decisions/database-roles.md.
 */
export const grants: GrantsOf<Tables & MigrationTables> = {
  kysely_migration: { ...readers, board: read },
  kysely_migration_lock: {},
  ...accountGrants,
  ...merchantGrants,
  ...paymentGrants,
  ...transferGrants,
  ...ledgerGrants,
  ...chainGrants,
  ...webhookGrants,
};
