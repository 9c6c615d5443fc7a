import type { Chain } from "../chains/open-chains.ts";
import type { BookingHandlers, WatchProgress } from "./booking-handlers.ts";
import { evmTransfers } from "./evm/evm-transfers.ts";
import type { ScreeningDeps } from "./list-screening.ts";
import { solanaTransfers } from "./solana/solana-transfers.ts";
import type { TransferDeps } from "./transfer-deps.ts";
import type { Signed, VerificationResult, VerifyDeps } from "./verification.ts";

export type GasDeps = Pick<TransferDeps, "metrics" | "log">;

/** The parts of transfers that differ between the chain families, for one chain. */
export type TransferDriver = {
  /** True where one cursor reads all assets from blocks; false where the history of each asset has its own cursor. */
  readonly readsBlocks: boolean;
  /** Creates the rows, and on Solana the accounts, that the chain's transfers need. Leaves existing ones as they are. */
  start(deps: TransferDeps): Promise<void>;
  /** Returns the newest height of the chain at any depth of confirmation. */
  readNewest(): Promise<number>;
  /** Makes the part of a watcher's pass that depends on the chain family. Updates `watched`. */
  runPass(
    deps: TransferDeps,
    watched: WatchProgress,
    args: { signal: AbortSignal; handlers: BookingHandlers; hasUnread: boolean },
  ): Promise<void>;
  /** Verifies transfers against the chain. Throws ChainError when the chain cannot be read. */
  verify(deps: VerifyDeps, all: readonly Signed[], by: "key" | "wallet"): Promise<[Signed, VerificationResult][]>;
  /** Verifies a signature without calling the chain. */
  checkSignature(signed: Signed): VerificationResult;
  /** Returns the accounts that fail screening. Throws ChainError when a provider is not available. */
  screen(deps: ScreeningDeps, accounts: readonly string[]): Promise<Set<string>>;
  /** Sets the gauge of the lanes' gas balances. */
  readGasBalances(deps: GasDeps): Promise<void>;
};

/** Returns the driver of a chain. No other function of this module depends on the chain family. */
export function driverOf(chain: Chain): TransferDriver {
  return chain.family === "evm" ? evmTransfers(chain) : solanaTransfers(chain);
}
