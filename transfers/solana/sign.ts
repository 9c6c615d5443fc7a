import type { SolanaSigner } from "../../chains/solana/keys.ts";
import { parseTransaction, withSignature } from "../../chains/solana/transactions.ts";

/** Puts the signatures of some of our keys into the wire bytes of a transaction of our own. */
export function signWith(unsigned: Uint8Array, signers: readonly SolanaSigner[]): Uint8Array {
  return signers.reduce((bytes, signer) => {
    const parsed = parseTransaction(bytes);
    if ("fault" in parsed) throw new Error(`a transaction of our own cannot be read: ${parsed.fault}`);
    return withSignature(parsed, signer.address, signer.sign(parsed.message));
  }, unsigned);
}
