import type { Logger } from "pino";
import type { Chains } from "../chains/chain.ts";
import type { Pool } from "../db/tables.ts";
import type { Enqueue } from "../queues/enqueue.ts";
import type { PublishPaymentChanges } from "../queues/payment-changes.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { Networks } from "../runtime/networks/read-networks.ts";
import type { SafeFetch } from "../runtime/safe-fetch.ts";
import type { ScreeningList } from "../transfers/list-screening.ts";
import type { AssetUnits } from "./asset-units.ts";

/** The dependencies of this module's functions. Each main.ts creates them once; a test creates its own. */
export type PaymentDeps = {
  db: Pool;
  chains: Chains;
  networks: Networks;
  assetUnits: AssetUnits;
  /** Enqueues jobs. Call it after the commit. */
  enqueue: Enqueue;
  /** Wakes long polls. Call it after the commit. */
  publishPaymentChanges: PublishPaymentChanges;
  /** Accounts that the operator does not serve (screening). */
  screeningList: ScreeningList;
  log: Logger;
  metrics: Metrics;
  /** Fetches URLs that callers have supplied. */
  safeFetch: SafeFetch;
  /** The only clock. */
  now: () => Date;
};

/** Time after which the sweep enqueues a row's job again, in case the first job was lost, milliseconds. */
export const REENQUEUE_AFTER_MS = 2_000;
