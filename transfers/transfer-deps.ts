import type { Logger } from "pino";
import type { Chains } from "../chains/chain.ts";
import type { EvmKeys } from "../chains/evm/signers/open-evm-keys.ts";
import type { SolanaKeys } from "../chains/solana/open-solana-keys.ts";
import type { Pool } from "../db/tables.ts";
import type { Metrics } from "../runtime/metrics.ts";
import type { TreasurySigner } from "../signer/treasury-signer.ts";
import type { Epoch } from "./database-epoch.ts";
import type { ScreeningList } from "./list-screening.ts";

/** The keys that a process holds, by CAIP-2 id. Drivers add those of a chain when the chain starts. */
export type KeyStores = { keys: Map<string, EvmKeys>; solanaKeys: Map<string, SolanaKeys> };

/** Dependencies of this module's functions. */
export type TransferDeps = {
  db: Pool;
  chains: Chains;
  /** Keys of the lanes on EVM chains, by CAIP-2 id. */
  keys: ReadonlyMap<string, EvmKeys>;
  /** Keys of the lanes on Solana clusters, by CAIP-2 id. */
  solanaKeys: ReadonlyMap<string, SolanaKeys>;
  /** Signs with the treasury's keys. */
  signer: TreasurySigner;
  /** When this process started. Progress that a watcher stored earlier may predate a database restore. */
  startedAt: Date;
  /** Detects when the database has lost commits. */
  epoch: Epoch;
  /** The deployment's name, which is part of every natural key. */
  deployment: string;
  /** Identifies this process in leases. */
  owner: string;
  /** Accounts that the operator's screening list names. */
  screeningList: ScreeningList;
  log: Logger;
  metrics: Metrics;
  now: () => Date;
};
