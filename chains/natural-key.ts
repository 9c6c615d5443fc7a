import type { Hex } from "viem";
import { keccak256 } from "./keccak256.ts";

/**
 * Derives the natural key that binds a transfer to one payment, settlement or refund: the nonce of an authorization on EVM
 * chains, the memo of a transaction on Solana. A buyer who pays the same payment twice with a token signs the same key
 * twice, and the token or our check refuses the second one.
 * @param parts from one of the functions below; a part must not contain a line feed
 */
export function deriveNonce(deployment: string, parts: readonly string[]): Hex {
  return keccak256(Buffer.from([deployment, ...parts].join("\n")));
}

/**
 * Returns the parts of a payment's natural key. They name the merchant, so that the chain shows whose money a transfer is
 * and a changed row cannot assign it to another merchant.
 */
export function paymentKey(of: { merchantId: string; paymentId: string }): string[] {
  return ["payment", of.merchantId, of.paymentId];
}

/**
 * Returns the parts of a settlement's natural key. None of the keys of payouts contains a generated id, because a restored
 * database would generate other ids.
 */
export function settlementKey(of: { merchantId: string; asset: string; number: number }): string[] {
  return ["settlement", of.merchantId, of.asset, String(of.number)];
}

/** Returns the parts of the natural key of a payment's refund. `number` counts the refunds of the payment. */
export function refundKey(of: { merchantId: string; paymentId: string; number: number }): string[] {
  return ["refund", "payment", of.merchantId, of.paymentId, String(of.number)];
}

/** Returns the parts of the natural key of a refund without a payment, which returns one movement to its sender. */
export function returnKey(of: { chain: string; txHash: string; logIndex: number }): string[] {
  return ["refund", "movement", of.chain, of.txHash, String(of.logIndex)];
}

/** Returns the parts of the natural key of a transfer to the cold address. `number` counts those of the asset. */
export function coldKey(of: { asset: string; number: number }): string[] {
  return ["cold", of.asset, String(of.number)];
}

/** Returns the parts of the natural key of a withdrawal of the operator's capital. */
export function withdrawalKey(of: { reference: string }): string[] {
  return ["withdrawal", of.reference];
}
