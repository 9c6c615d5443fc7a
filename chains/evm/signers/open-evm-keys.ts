import { bytesToHex } from "viem";
import type { EvmNetwork, KeySource } from "../../../runtime/networks/read-networks.ts";
import { type KeyReaders, openKeySource } from "../../signers/open-key-source.ts";
import { createLocalSigner } from "./local-signer.ts";
import { createRemoteSigner } from "./remote-signer.ts";
import type { Signer } from "./signer.ts";

/** The keys of a network's lanes; only worker processes that send hold them. */
export type EvmKeys = { lanes: readonly Signer[] };

/**
 * Opens the keys of a network's lanes. Throws ConfigError if a source has no key, ChainError `wrong_key`, and for
 * keys in a KMS `signer_unavailable` or `signer_refused`.
 */
export async function openEvmKeys(network: EvmNetwork, readers: KeyReaders): Promise<EvmKeys> {
  return { lanes: await Promise.all(network.lanes.map(({ address, key }) => openSigner(address, key, readers))) };
}

/** Opens the treasury's key only. Throws the same errors as `openEvmKeys`. */
export function openTreasury({ treasury }: EvmNetwork, readers: KeyReaders): Promise<Signer> {
  return openSigner(treasury.address, treasury.key, readers);
}

/** Opens one key. Throws the same errors as `openEvmKeys`. */
export async function openSigner(address: string, key: KeySource, readers: KeyReaders): Promise<Signer> {
  const opened = await openKeySource(key, "secp256k1", readers);
  if ("remote" in opened) return createRemoteSigner(address, opened.remote);
  const secret = "secret" in opened ? bytesToHex(opened.secret) : readers.readKey(opened.plain);
  return createLocalSigner(address, secret);
}
