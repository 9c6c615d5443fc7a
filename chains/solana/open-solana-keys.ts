import type { KeySource, SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { ChainError } from "../errors.ts";
import { type KeyReaders, type NeededKeys, openKeySource } from "../signers/open-key-source.ts";
import { openKeypair, openSeed, parseSecret } from "./ed25519-keys.ts";
import { createRemoteSigner, type SolanaSigner } from "./solana-signer.ts";

/** The opened keys of a cluster; only worker processes hold them. A key that the process does not need is not opened. */
export type SolanaKeys = { treasury: SolanaSigner | undefined; lanes: ReadonlyMap<string, SolanaSigner> };

type Readers = Pick<KeyReaders, "readSecret" | "readText">;

/**
 * Opens the needed keys that a networks file names. Throws ConfigError if a source has no key, ChainError `wrong_key`, which
 * names the address and never the key, and for keys in a KMS `signer_unavailable` or `signer_refused`.
 */
export async function openSolanaKeys(
  network: SolanaNetwork,
  readers: Readers,
  needed: NeededKeys,
): Promise<SolanaKeys> {
  const [treasury, ...lanes] = await Promise.all([
    needed.treasury ? openSolanaKey(network.treasury, readers) : undefined,
    ...(needed.lanes ? network.lanes.map((lane) => openSolanaKey(lane, readers)) : []),
  ]);
  return { treasury, lanes: new Map(lanes.flatMap((lane) => (lane ? [[lane.address, lane]] : []))) };
}

/** Opens one key. Throws the same errors as `openSolanaKeys`. */
export async function openSolanaKey(
  { address, key }: { address: string; key: KeySource },
  readers: Readers,
): Promise<SolanaSigner> {
  const opened = await openKeySource(key, "ed25519", readers);
  if ("remote" in opened) return createRemoteSigner(address, opened.remote);
  const keypair =
    "secret" in opened ? openSeed(opened.secret) : openPlainKey(address, readers.readSecret(opened.plain));
  if (keypair.address !== address) throw new ChainError("wrong_key", { detail: `expected the key of ${address}` });
  return { address, sign: async (message) => keypair.sign(message) };
}

function openPlainKey(address: string, text: string) {
  const secret = parseSecret(text);
  if (!secret)
    throw new ChainError("wrong_key", { detail: `the key of ${address} is not a Solana keypair of 64 bytes` });
  return openKeypair(secret);
}
