import type { Hex } from "viem";
import { keccak256 } from "./keccak256.ts";

/** What a natural key is derived from: the parts of its hash, and the hex digits with which it begins. */
export type KeyParts = { parts: readonly string[]; begins: string };

/**
 * Derives the natural key that binds a transfer to one payment, settlement or refund: the nonce of an authorization on EVM
 * chains, the memo of a transaction on Solana. A buyer who pays the same payment twice with a token signs the same key
 * twice, and the token or our check refuses the second one.
 * @param keyParts from one of the functions below; a part must not contain a line feed
 */
export function deriveNonce(deployment: string, keyParts: KeyParts): Hex {
  const { parts, begins } = keyParts;
  const hash = keccak256(Buffer.from([deployment, ...parts].join("\n")));
  return `0x${begins}${hash.slice(2 + begins.length)}`;
}

const named = (...parts: string[]): KeyParts => ({ parts, begins: "" });

/**
 * Returns what a payment's natural key names. It names the merchant, so that the chain shows whose money a transfer is
 * and a changed row cannot assign it to another merchant. It begins with the second of the payment's id, so that new rows are near
 * each other in indexes by natural key (docs/decisions/ids.md). The other 224 bits are the hash.
 */
export function paymentKey({ merchantId, paymentId }: { merchantId: string; paymentId: string }): KeyParts {
  const begins = /^pay_([0-9a-f]{8})[0-9a-f]{24}$/.exec(paymentId)?.[1] ?? "";
  return { parts: ["payment", merchantId, paymentId], begins };
}

/**
 * Returns what a settlement's natural key names. None of the keys of payouts contains a generated id, because a restored
 * database would generate other ids.
 */
export function settlementKey(of: { merchantId: string; asset: string; number: number }): KeyParts {
  return named("settlement", of.merchantId, of.asset, String(of.number));
}

/** Returns what the natural key of a payment's refund names. `number` counts the refunds of the payment. */
export function refundKey(of: { merchantId: string; paymentId: string; number: number }): KeyParts {
  return named("refund", "payment", of.merchantId, of.paymentId, String(of.number));
}

/** Returns what the natural key of a refund without a payment names. The refund returns one movement to its sender. */
export function returnKey(of: { chain: string; txHash: string; logIndex: number }): KeyParts {
  return named("refund", "movement", of.chain, of.txHash, String(of.logIndex));
}

/** Returns what the natural key of a transfer to the cold address names. `number` counts those of the asset. */
export function coldKey(of: { asset: string; number: number }): KeyParts {
  return named("cold", of.asset, String(of.number));
}

/** Returns what the natural key of a withdrawal of the operator's capital names. */
export function withdrawalKey(of: { reference: string }): KeyParts {
  return named("withdrawal", of.reference);
}
