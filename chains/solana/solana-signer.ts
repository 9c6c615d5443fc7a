import { base58 } from "@scure/base";
import { ChainError } from "../errors.ts";
import { callService, parsePublicKey, type RemoteKey } from "../signers/remote-key.ts";
import { verifySignature } from "./ed25519-keys.ts";

/**
 * A key that we hold or that a service holds for us. `sign` returns the 64 bytes of an Ed25519 signature over the message,
 * which is not hashed first. A remote signer throws ChainError `signer_unavailable` (transient) or `signer_refused` (needs the
 * operator).
 */
export type SolanaSigner = { address: string; sign(message: Uint8Array): Promise<Uint8Array> };

/**
 * Creates a signer for a key in a service, and checks that the key belongs to the address. A signature that the address did
 * not make is never used. Throws ChainError `wrong_key`, `signer_unavailable` or `signer_refused`.
 */
export async function createRemoteSigner(address: string, key: RemoteKey): Promise<SolanaSigner> {
  const actual = addressOfPublicKey(await callService(key, () => key.readPublicKey()));
  if (actual !== address) throw new ChainError("wrong_key", { detail: `expected the key of ${address}` });
  return {
    address,
    async sign(message) {
      const signature = Uint8Array.from(await callService(key, () => key.sign(message)));
      if (!verifySignature(address, message, signature))
        throw new ChainError("signer_refused", { detail: "the signature was not made by the key over the message" });
      return signature;
    },
  };
}

/** Returns the address of a public key. Throws ChainError `wrong_key` if it is not an Ed25519 key. */
export function addressOfPublicKey(encoded: Buffer | string): string {
  const { crv, x } = parsePublicKey(encoded);
  if (crv !== "Ed25519" || !x) throw new ChainError("wrong_key", { detail: "the key is not an Ed25519 key" });
  return base58.encode(Buffer.from(x, "base64url"));
}
