import type { Hex } from "viem";
import { ChainError } from "../../errors.ts";
import { addressOfKey, signWithKey } from "../signature.ts";
import { createSigner, type Signer } from "./signer.ts";

/**
 * Creates a signer for a private key in memory. Throws ChainError `wrong_key` if the key belongs to another address.
 */
export function createLocalSigner(address: string, key: Hex): Signer {
  if (addressOfKey(key) !== address.toLowerCase())
    throw new ChainError("wrong_key", { detail: `expected the key of ${address}` });
  return createSigner(address, async (digest) => signWithKey(digest, key));
}
