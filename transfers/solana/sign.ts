import type { SolanaSigner } from "../../chains/solana/keys.ts";
import { parseTransaction, withSignature } from "../../chains/solana/transactions.ts";

/** Adds the signatures of our keys to the wire bytes of a transaction that we built. */
export function signWith(unsigned: Uint8Array, signers: readonly SolanaSigner[]): Uint8Array {
  return signers.reduce((bytes, signer) => {
    const parsed = parseTransaction(bytes);
    if ("fault" in parsed) throw new Error(`a transaction that we built cannot be parsed: ${parsed.fault}`);
    return withSignature(parsed, signer.address, signer.sign(parsed.message));
  }, unsigned);
}
