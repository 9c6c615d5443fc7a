import type { SolanaSigner } from "../../chains/solana/ed25519-keys.ts";
import { parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";

/** Adds the signatures of our keys to the wire bytes of a transaction that we built. */
export function signWith(unsigned: Uint8Array, signers: readonly SolanaSigner[]): Uint8Array {
  return signers.reduce((bytes, signer) => {
    const parsed = parseTransaction(bytes);
    if ("error" in parsed) throw new Error(`a transaction that we built cannot be parsed: ${parsed.error}`);
    return withSignature(parsed, signer.address, signer.sign(parsed.message));
  }, unsigned);
}
