import type { Logger } from "pino";
import type { EvmKeys } from "../chains/evm/signers/open.ts";
import type { Chains } from "../chains/open.ts";
import type { SolanaKeys } from "../chains/solana/signers.ts";
import type { Pool } from "../db/tables.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { Epoch } from "./epoch.ts";
import type { ScreeningList } from "./screening.ts";

/** What the steps of this room work with. */
export type TransferDeps = {
  db: Pool;
  chains: Chains;
  /** By CAIP-2; the keys of the lanes and of the treasury. */
  keys: ReadonlyMap<string, EvmKeys>;
  /** The same for Solana. */
  solanaKeys: ReadonlyMap<string, SolanaKeys>;
  /** When this process began: what a watcher had reached before may be from before a restore. */
  startedAt: Date;
  /** Notices when the database has stepped back in time. */
  epoch: Epoch;
  /** The deployment's name: part of every natural key. */
  deployment: string;
  /** Names this process in leases. */
  owner: string;
  /** Accounts that the operator does not serve. */
  screeningList: ScreeningList;
  log: Logger;
  metrics: Metrics;
  now: () => Date;
};
