import type { Logger } from "pino";
import type { Chains } from "../chains/open.ts";
import type { Pool } from "../db/tables.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { Networks } from "../ops/networks.ts";
import type { Outward } from "../ops/outward.ts";
import type { Sealer } from "../ops/sealer.ts";
import type { Announce } from "../queues/announce.ts";
import type { Ring } from "../queues/ring.ts";
import type { ScreeningList } from "../transfers/list-screening.ts";

/** The dependencies of this module's functions. Each main.ts creates them once; a test creates its own. */
export type PaymentDeps = {
  db: Pool;
  chains: Chains;
  networks: Networks;
  /** Enqueues jobs. Call it after the commit. */
  ring: Ring;
  /** Wakes long polls. Call it after the commit. */
  announce: Announce;
  /** Accounts that the operator does not serve (screening). */
  screeningList: ScreeningList;
  log: Logger;
  metrics: Metrics;
  /** Encrypts data at rest in the database. */
  sealer: Sealer;
  /** Fetches URLs that callers have supplied. */
  outward: Outward;
  /** The only clock. */
  now: () => Date;
};

/** Time after which the sweep enqueues a row's job again, in case the first job was lost, milliseconds. */
export const RING_AGAIN_MS = 2_000;
