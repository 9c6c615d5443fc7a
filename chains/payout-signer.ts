import type { Hex } from "viem";

/** A transfer out of the treasury. `amount` is in minor units, `receiver` in the canonical form of its chain. */
export type UnsignedPayout = { asset: string; amount: bigint; receiver: string; nonce: Hex };

/** Signs payouts with the treasury's key of one chain. */
export type PayoutSigner = {
  /**
   * Returns the signature with which any account can submit the payout; the chain accepts one transfer with its nonce. Returns
   * null on chains where the treasury signs the transaction that makes the payout. Throws ChainError `signer_unavailable` or
   * `signer_refused`.
   */
  sign(payout: UnsignedPayout): Promise<Hex | null>;
  /**
   * Returns the treasury's signature of a transaction's message, on chains where the treasury signs transactions. Throws the
   * same errors.
   */
  signMessage?(message: Uint8Array): Promise<Uint8Array>;
};
