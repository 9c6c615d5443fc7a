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

/** What the steps of this room work with. Made once by a main.ts; a test makes its own. */
export type PaymentDeps = {
  db: Pool;
  chains: Chains;
  networks: Networks;
  /** Puts jobs on queues; called after the commit. */
  ring: Ring;
  /** Wakes long polls; called after the commit. */
  announce: Announce;
  /** Accounts that the operator does not serve. */
  screeningList: ScreeningList;
  log: Logger;
  metrics: Metrics;
  /** Encrypts what rests in the database. */
  sealer: Sealer;
  /** Asks servers that callers have named. */
  outward: Outward;
  /** The only clock. */
  now: () => Date;
};

/** After this the sweep rings again for a row whose own ring was lost, milliseconds. */
export const RING_AGAIN_MS = 2_000;
