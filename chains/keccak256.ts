import { createKeccak } from "hash-wasm";
import type { Hex } from "viem";

const hasher = await createKeccak(256);

/**
 * Returns the Keccak-256 hash of bytes. It is made in WebAssembly, which takes a tenth of the time of JavaScript: each payment
 * needs about a dozen hashes, and Node's crypto has only SHA-3, which pads in another way (FIPS 202).
 */
export function keccak256(bytes: Uint8Array): Hex {
  return `0x${hasher.init().update(bytes).digest("hex")}`;
}
