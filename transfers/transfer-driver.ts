import type { Sender } from "../chains/chain-driver.ts";
import type { KeyReaders } from "../chains/signers/open-key-source.ts";
import type { ChainStatus, LaneStatus } from "../db/queries/gauges.ts";
import type { NewTransfer } from "../db/queries/transfers.ts";
import type { BookingHandlers, SendHandlers, WatchProgress } from "./booking-handlers.ts";
import type { ScreeningDeps } from "./list-screening.ts";
import type { KeyStores, TransferDeps } from "./transfer-deps.ts";
import type { Signed, VerificationResult, VerifyDeps } from "./verification.ts";
import type { WalletDriver } from "./wallet-driver.ts";

/**
 * The native balance of a lane, and the balance below which it can send nothing, in minor units: the cost of one transfer, on
 * EVM chains at the present fee, on Solana at the highest priority fee.
 */
export type LaneFunds = { chain: string; lane: string; balance: bigint; needs: bigint };

export type GasDeps = Pick<TransferDeps, "metrics" | "log">;

/** How a payout is made, and until when its signature is valid. */
type PayoutForm = Pick<NewTransfer, "kind" | "valid_before">;

/** The parts of transfers that differ between the chain families, for one chain. */
export type TransferDriver = {
  /** True where one cursor reads all assets from blocks; false where the history of each asset has its own cursor. */
  readonly readsBlocks: boolean;
  /** What buyers' wallets are asked for. */
  readonly wallets: WalletDriver;
  /** Opens the keys of the chain's lanes and stores them in `stores`. Throws ConfigError and ChainError; see `openEvmKeys`. */
  openKeys(stores: KeyStores, readers: KeyReaders): Promise<void>;
  /** Creates the rows, and on Solana the accounts, that the chain's transfers need. Leaves existing ones as they are. */
  start(deps: TransferDeps): Promise<void>;
  /**
   * Returns the assets (CAIP-19) that a worker reads since a place on the chain that is stored. What moves from now on is
   * read, however late.
   */
  listWatched(deps: Pick<TransferDeps, "db">): Promise<ReadonlySet<string>>;
  /**
   * Returns the height up to which the chain has to be read when the database has lost commits: a transaction that was signed
   * before is either below it or refused by the chain.
   */
  readLastHeight(): Promise<number>;
  /** Makes the part of a watcher's pass that depends on the chain family. Updates `watched`. */
  runPass(
    deps: TransferDeps,
    watched: WatchProgress,
    args: { signal: AbortSignal; handlers: BookingHandlers; hasUnread: boolean },
  ): Promise<void>;
  /** Continues to read histories that have their own cursors. Returns `more` when something is left to read. */
  readHistory(
    deps: TransferDeps,
    handlers: Pick<BookingHandlers, "unsolicited" | "gas" | "rent">,
  ): Promise<"idle" | "more">;
  /** Sends every ready transfer of a sender. Returns `more` when work is left for another run. */
  send(deps: TransferDeps, sender: Sender, handlers: SendHandlers): Promise<"idle" | "more">;
  /**
   * Returns true when the lanes of a sender that are in use can send all ready transfers. Their owners check for them before they
   * release a lane.
   */
  wakeOwners(deps: Pick<TransferDeps, "db">, sender: Sender): Promise<boolean>;
  /** Returns how payouts of an asset are made. */
  payoutForm(asset: string): PayoutForm;
  /** Verifies transfers against the chain. Throws ChainError when the chain cannot be read. */
  verify(deps: VerifyDeps, all: readonly Signed[], by: "key" | "wallet"): Promise<[Signed, VerificationResult][]>;
  /** Verifies a signature without calling the chain. */
  checkSignature(signed: Signed): VerificationResult;
  /** Returns the accounts that fail screening. Throws ChainError when a provider is not available. */
  screen(deps: ScreeningDeps, accounts: readonly string[]): Promise<Set<string>>;
  /**
   * Returns true if the issuer of an asset blocks an account, so that it can receive nothing. False on Solana, where the simulation of a
   * payout finds a frozen account. Throws ChainError when the chain cannot be read.
   */
  isBlockedByIssuer(asset: string, account: string): Promise<boolean>;
  /** Returns the payers that cannot pay now because their earlier payments have burned our gas. */
  listBarred(deps: Pick<TransferDeps, "db" | "now">): Promise<ReadonlySet<string>>;
  /** Sets the gauge of the lanes' gas balances. Returns those of the lanes that could be read. */
  readGasBalances(deps: GasDeps): Promise<LaneFunds[]>;
  /** Sets the gauges of what issuers have done with the tokens. Does nothing on Solana, where such mints are refused. */
  readIssuerActions(deps: GasDeps): Promise<void>;
  /** Returns true while the fee ceiling stops a lane that has something to send. */
  isLaneHeld(lane: LaneStatus, chain: ChainStatus | undefined): boolean;
};
