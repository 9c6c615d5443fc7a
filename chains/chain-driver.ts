import type { Hex } from "viem";
import type { Metrics } from "../runtime/metrics.ts";
import type { EvmNetwork, Network } from "../runtime/networks/read-networks.ts";
import type { AssetId } from "./caip.ts";
import type { Chain } from "./chain.ts";
import type { FeedReading, FeedState } from "./evm/price-feeds.ts";
import type { FinalReading, FinalTransaction } from "./final-transaction.ts";
import type { PayoutSigner, UnsignedPayout } from "./payout-signer.ts";
import type { KeyReaders } from "./signers/open-key-source.ts";
import type { TokenMovement } from "./token-movement.ts";

/** What a wallet needs in order to add a network that it does not know (EIP-3085). It is public. */
export type NetworkDetails = NonNullable<EvmNetwork["addEthereumChain"]>;

/**
 * The keys that send a transfer: the lanes, the lane of contract wallets, or the relayers that sign a payer's own
 * transaction and pay its fee.
 */
export type Sender = "lanes" | "wallet lane" | "relayers";

/** A signed transaction as it is stored: its bytes, the limit of its gas, and the highest fee for each unit of it. */
export type StoredCost = { bytes: Buffer; gasLimit: bigint; maxFeePerGas: bigint };

/** A balance of ours: the treasury's of a token (CAIP-19), or a lane's of the native asset. */
export type Holding = { asset: string } | { lane: string };

/** Balances at a height, in the order asked for. Undefined for a token that can no longer be located. */
export type HeldBalances = { height: number; balances: readonly (bigint | undefined)[] };

/**
 * The treasury's balance of a token at a final height, minor units. `isMade`: the same state shows the payout that was asked about
 * as made; false if none was asked about, and on Solana after its marker was closed.
 */
export type FinalBalance = { height: number; balance: bigint; isMade: boolean };

/**
 * What differs between the chain families and needs nothing but the chain. Each family implements it once, and
 * `findChainDriver` finds the implementation by CAIP-2 namespace. Networks and chains passed to a driver are of its family.
 */
export type ChainDriver<N extends Network = Network, C extends Chain = Chain> = {
  /** The SLIP-44 coin type of the native asset, which CAIP-19 names it by. */
  readonly nativeCoin: number;
  /** The CAIP-19 namespace of tokens. */
  readonly tokenNamespace: string;
  /** The largest amount of a token that can be asked for, minor units. */
  readonly maxAmount: bigint;
  /** False where nodes return only current balances. */
  readonly readsPastBalances: boolean;
  /** True where the treasury signs each payout; false where it signs the transactions that make payouts. */
  readonly signsPayouts: boolean;

  /** Returns an address in the form in which rows store it and addresses are compared. */
  normalizeAddress(address: string): string;
  /** Returns a CAIP-19 asset in the form in which assets are compared. */
  normalizeAsset(asset: string): string;
  /** Returns true for a text that has the form of an address. */
  isAddress(text: string): boolean;
  /** Validates an address that a person typed. Returns the error, or undefined. */
  validateAddress(address: string): string | undefined;
  /** Validates that an asset is a token. Returns the error, or undefined. */
  validateToken(asset: AssetId): string | undefined;
  /** Returns the scope that the number of a movement is unique in: its block or its transaction. */
  movementScope(place: { block_id: string; tx_hash: string }): string;
  /** Returns who sends a transfer. `isWallet`: its payer is a contract wallet. */
  senderOf(transfer: { isWallet?: boolean }): Sender;

  /** Returns the decimals and the symbol of the native asset. */
  nativeUnit(network: N): { decimals: number; symbol: string };
  /** Returns the usual time between blocks, milliseconds. */
  blockMs(network: N): number;
  /** Returns the usual time from inclusion to confirmation, milliseconds, or its upper bound where the chain decides. */
  finalityMs(network: N): number;
  /** Returns true for a network that makes blocks on demand, such as a local Anvil. */
  makesBlocksOnDemand(network: N): boolean;
  /** Returns what a wallet needs in order to add the network; undefined where the networks file does not say. */
  detailsOf(network: N): NetworkDetails | undefined;
  /** Returns the most that a transaction of a lane can cost it, with everything that the chain charges, minor units. */
  mostCost(network: N, transaction: StoredCost): bigint;
  /**
   * Lists addresses where a payout would be lost or come back to us: our own accounts, and contracts from which either no
   * account or any account can take the money.
   */
  listOwnAddresses(network: N): string[];

  /** Opens a network without sending a request. */
  open(network: N, metrics: Metrics): C;
  /** Compares the networks file's entry with the chain. Throws ChainError if they differ. */
  check(chain: C): Promise<void>;
  /** Lists our token accounts whose histories are read separately; none where the watcher reads all assets from blocks. */
  listHistoryAccounts(chain: C): string[];
  /** Reads balances at a height, or the current ones where nodes return no others. Throws ChainError. */
  readBalances(chain: C, holdings: readonly Holding[], height: number): Promise<HeldBalances>;
  /**
   * Reads the treasury's balance of a token in the final state, and whether the payout of a nonce is made in the same state.
   * Throws ChainError.
   */
  readFinalBalance(chain: C, of: { asset: string; nonce: Hex | undefined }): Promise<FinalBalance>;
  /** Opens the treasury's key. Throws ConfigError and ChainError, as `openSigner` does. */
  openPayoutSigner(chain: C, readers: KeyReaders): Promise<PayoutSigner>;
  /** Returns how the treasury pays an asset out. The nonces of one kind are unused in another. */
  payoutKind(chain: C, asset: string): "eip3009" | "disburse" | "spl";
  /** Returns true if the chain makes only one of two payouts of these assets that have the same nonce. */
  sharesNonces(chain: C, assets: readonly [string, string]): boolean;
  /** Returns the call with which any account submits a signed payout. Throws on chains where payouts are not signed so. */
  encodePayout(chain: C, payout: UnsignedPayout, signature: Hex): { to: Hex; data: Hex };
  /** Reads transactions by hash. Throws ChainError when the chain cannot be read. */
  readFinalMovements(
    chain: C,
    hashes: readonly string[],
    reading?: FinalReading,
  ): Promise<ReadonlyMap<string, FinalTransaction>>;
  /** Returns the same chain with another treasury of the deployment, for reading its movements and balances. */
  withTreasury(chain: C, treasury: string): C;
  /** Returns the newest final block, or slot. Throws ChainError. */
  readFinalHeight(chain: C): Promise<number>;
  /**
   * Reads the movements of the treasury in final blocks or slots (both ends included), in parts. Movements out of it have their
   * natural keys. Throws ChainError when the chain cannot be read.
   */
  readTreasuryHistory(chain: C, range: { from: number; to: number }): AsyncIterable<readonly TokenMovement[]>;
  /**
   * Reads a price feed, and the sequencer uptime feed if there is one, with two endpoints if two answer. They must agree on whether the
   * price is usable. Throws ChainError.
   */
  readPriceFeed(
    chain: C,
    args: { feed: string; sequencer: string | undefined; isUsable: (state: FeedState) => boolean },
  ): Promise<FeedReading>;
};
