import type { ComputeBudget } from "./build-payment.ts";
import { buildPayouts, type Payout, type PayoutArgs } from "./build-payouts.ts";
import { getSolanaToken, type SolanaChain } from "./open-solana-chain.ts";
import { closeMarkers } from "./payout-markers.ts";
import { parseTransaction } from "./wire-format.ts";

/**
 * A transaction that makes payouts of one asset. `nonce` is the value of the durable nonce account. Everything else in the
 * transaction follows from the networks file, so that two processes that have the same one build the same bytes.
 */
export type PayoutTransaction = {
  asset: string;
  /** A relayer, which pays fees and rent. */
  feePayer: string;
  nonceAccount: string;
  nonce: string;
  /** Rent of a payout marker, in lamports. */
  markerRent: bigint;
  budget: ComputeBudget;
  payouts: readonly Payout[];
};

/** A transaction that closes payout markers and sends their lamports to the relayer that pays its fee. */
export type MarkerClosing = {
  feePayer: string;
  blockhash: string;
  markers: readonly { address: string; lamports: bigint }[];
};

/** Returns the parts of a payout transaction other than the payouts, as `buildPayouts` takes them. */
export function toPayoutArgs(
  chain: SolanaChain,
  { asset, ...given }: Omit<PayoutTransaction, "payouts">,
): Omit<PayoutArgs, "payouts"> {
  const { token: mint, program, decimals } = getSolanaToken(chain, asset);
  return { ...given, treasury: chain.treasury, nonceAuthority: chain.treasury, mint, program, decimals };
}

/** Builds the unsigned wire bytes of a payout transaction. */
export function buildPayoutTransaction(chain: SolanaChain, transaction: PayoutTransaction): Uint8Array {
  return buildPayouts({ ...toPayoutArgs(chain, transaction), payouts: transaction.payouts });
}

/** Builds the unsigned wire bytes of a transaction that closes markers. */
export function buildMarkerClosing(chain: SolanaChain, closing: MarkerClosing): Uint8Array {
  return closeMarkers({ ...closing, treasury: chain.treasury });
}

/** Returns the message of wire bytes that we built, which is what signers sign. */
export function messageOf(bytes: Uint8Array): Uint8Array {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(`a transaction that we built cannot be parsed: ${parsed.error}`);
  return parsed.message;
}
