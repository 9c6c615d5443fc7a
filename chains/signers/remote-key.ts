import { createPublicKey, type JsonWebKey } from "node:crypto";
import { ChainError } from "../errors.ts";

/** What a key signs with: ECDSA over 32-byte digests, or Ed25519 over the message itself. */
export type SigningScheme = "secp256k1" | "ed25519";

/** A key in a key management service. */
export type RemoteKey = {
  /** Returns the public key as DER (SPKI) or PEM. */
  readPublicKey(): Promise<Buffer | string>;
  /**
   * Returns a signature. secp256k1: of a 32-byte digest, as DER; its s may be high. Ed25519: of a message of any length up to
   * 4,096 bytes, as the 64 bytes of RFC 8032.
   */
  sign(message: Uint8Array): Promise<Uint8Array>;
  /** Returns true if a retry may succeed after an error of the service. */
  isTransient(error: unknown): boolean;
};

/** Calls a service. Throws ChainError `signer_unavailable` or `signer_refused` for its errors. */
export async function callService<T>(key: RemoteKey, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    // The service's message may contain the signed data.
    const detail = cause instanceof Error ? cause.name : "unknown error";
    throw new ChainError(key.isTransient(cause) ? "signer_unavailable" : "signer_refused", { cause, detail });
  }
}

/** Parses a public key as services return it. Throws ChainError `wrong_key`. */
export function parsePublicKey(encoded: Buffer | string): JsonWebKey {
  try {
    const key = createPublicKey(typeof encoded === "string" ? encoded : { key: encoded, format: "der", type: "spki" });
    return key.export({ format: "jwk" });
  } catch (cause) {
    throw new ChainError("wrong_key", { cause, detail: "the service returned no readable public key" });
  }
}
