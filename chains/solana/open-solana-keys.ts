import type { KeySource, SolanaNetwork } from "../../runtime/networks/read-networks.ts";
import { ChainError } from "../errors.ts";
import { type KeyReaders, openKeySource } from "../signers/open-key-source.ts";
import { openKeypair, openSeed, parseSecret, SECRET_FORMAT } from "./ed25519-keys.ts";
import { createRemoteSigner, type SolanaSigner } from "./solana-signer.ts";

/** The keys of a cluster's lanes, by address; only worker processes that send hold them. */
export type SolanaKeys = { lanes: ReadonlyMap<string, SolanaSigner> };

type Readers = Pick<KeyReaders, "readSecret" | "readText">;

/**
 * Opens the keys of a cluster's lanes. Throws ConfigError if a source has no key, ChainError `wrong_key`, which names the
 * address and never the key, and for keys in a KMS `signer_unavailable` or `signer_refused`.
 */
export async function openSolanaKeys(network: SolanaNetwork, readers: Readers): Promise<SolanaKeys> {
  const lanes = await Promise.all(network.lanes.map((lane) => openSolanaKey(lane, readers)));
  return { lanes: new Map(lanes.map((lane) => [lane.address, lane])) };
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
    throw new ChainError("wrong_key", {
      detail: `the key of ${address} is not a Solana key; expected ${SECRET_FORMAT}`,
    });
  return openKeypair(secret);
}
