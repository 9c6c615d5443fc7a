import type { Kysely, Transaction } from "kysely";
import type { AccountTables } from "./tables/account-tables.ts";
import type { AuditTables } from "./tables/audit-tables.ts";
import type { ChainTables } from "./tables/chain-tables.ts";
import type { LedgerTables } from "./tables/ledger-tables.ts";
import type { MerchantTables } from "./tables/merchant-tables.ts";
import type { OperatorTables } from "./tables/operator-tables.ts";
import type { PaymentTables } from "./tables/payment-tables.ts";
import type { PayoutTables } from "./tables/payout-tables.ts";
import type { RetentionTables } from "./tables/retention-tables.ts";
import type { SolanaTables } from "./tables/solana-tables.ts";
import type { TransferTables } from "./tables/transfer-tables.ts";
import type { WebhookTables } from "./tables/webhook-tables.ts";

export type {
  Allowance,
  FailedKind,
  Kind,
  Listing,
  ListPlaces,
  Mode,
  Purpose,
  StoredReading,
  Verification,
} from "./tables/column-types.ts";
export type { RetainedRelation } from "./tables/retention-tables.ts";

/** Every table by its name; db/migrations creates them. */
export type Tables = AccountTables &
  MerchantTables &
  PaymentTables &
  PayoutTables &
  LedgerTables &
  TransferTables &
  ChainTables &
  SolanaTables &
  WebhookTables &
  AuditTables &
  OperatorTables &
  RetentionTables;

/** A connection pool or an open transaction. The caller owns the transaction. */
export type Db = Kysely<Tables> | Transaction<Tables>;
/** The pool, for functions that open a transaction of their own. */
export type Pool = Kysely<Tables>;
