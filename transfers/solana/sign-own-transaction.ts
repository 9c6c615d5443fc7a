import { verifySignature } from "../../chains/solana/ed25519-keys.ts";
import type { SolanaSigner } from "../../chains/solana/solana-signer.ts";
import { type ParsedTransaction, parseTransaction, withSignature } from "../../chains/solana/wire-format.ts";

/** Adds a relayer's signature to the wire bytes of a transaction that we built. Throws ChainError. */
export async function signWith(bytes: Uint8Array, relayer: SolanaSigner): Promise<Uint8Array> {
  const parsed = parseOwn(bytes);
  return withSignature(parsed, relayer.address, await relayer.sign(parsed.message));
}

/** Adds the treasury's signature, which the signer returned in base64. Throws if it is not one of these bytes. */
export function withTreasurySignature(bytes: Uint8Array, treasury: string, encoded: string): Uint8Array {
  const parsed = parseOwn(bytes);
  const signature = Buffer.from(encoded, "base64");
  if (!verifySignature(treasury, parsed.message, signature))
    throw new Error("the signer has signed another transaction: its networks file differs from that of this process");
  return withSignature(parsed, treasury, signature);
}

function parseOwn(bytes: Uint8Array): ParsedTransaction {
  const parsed = parseTransaction(bytes);
  if ("error" in parsed) throw new Error(`a transaction that we built cannot be parsed: ${parsed.error}`);
  return parsed;
}
