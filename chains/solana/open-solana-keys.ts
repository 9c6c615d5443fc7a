import type { SecretSource, SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { ChainError } from "../errors.ts";
import { openKeypair, parseSecret, type SolanaSigner } from "./ed25519-keys.ts";

/** The keys of a cluster; only worker processes hold them. */
export type SolanaKeys = { treasury: SolanaSigner; lanes: ReadonlyMap<string, SolanaSigner> };

/**
 * Opens the keys that a networks file names. Throws the error of `readSecret` if a source has no key, and ChainError
 * `wrong_key`, which names the address and never the key.
 */
export function openSolanaKeys(network: SolanaNetwork, readSecret: (source: SecretSource) => string): SolanaKeys {
  const lanes = network.lanes.map((lane) => openSolanaKey(lane, readSecret));
  const treasury = openSolanaKey(network.treasury, readSecret);
  return { treasury, lanes: new Map(lanes.map((lane) => [lane.address, lane])) };
}

/** Opens one key. Throws the same errors as `openSolanaKeys`. */
export function openSolanaKey(
  { address, key }: { address: string; key: SecretSource },
  readSecret: (source: SecretSource) => string,
): SolanaSigner {
  const secret = parseSecret(readSecret(key));
  if (!secret)
    throw new ChainError("wrong_key", { detail: `the key of ${address} is not a Solana keypair of 64 bytes` });
  const signer = openKeypair(secret);
  if (signer.address !== address) throw new ChainError("wrong_key", { detail: address });
  return signer;
}
