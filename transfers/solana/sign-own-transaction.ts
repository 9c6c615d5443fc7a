import type { SolanaSigner } from "../../chains/solana/solana-signer.ts";
import { parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";

/** Adds the signatures of our keys to the wire bytes of a transaction that we built. Throws ChainError. */
export async function signWith(unsigned: Uint8Array, signers: readonly SolanaSigner[]): Promise<Uint8Array> {
  const parsed = parseTransaction(unsigned);
  if ("error" in parsed) throw new Error(`a transaction that we built cannot be parsed: ${parsed.error}`);
  const signatures = await Promise.all(
    signers.map(async (signer) => ({ address: signer.address, signature: await signer.sign(parsed.message) })),
  );
  return signatures.reduce(
    (bytes, { address, signature }) => withSignature({ ...parsed, bytes }, address, signature),
    unsigned,
  );
}
