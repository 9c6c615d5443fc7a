import type { Hex } from "viem";
import type { EvmNetwork, KeySource } from "../../../runtime/networks/read-networks.ts";
import { decryptKeystore } from "./keystore-file.ts";
import { createLocalSigner } from "./local-signer.ts";
import { createRemoteSigner } from "./remote-signer.ts";
import type { Signer } from "./signer.ts";

/** The keys of a network's lanes; only worker processes hold them. */
export type EvmKeys = { lanes: readonly Signer[] };

/** Functions that read the key sources of a networks file: a plain key, any secret, a file. Each throws ConfigError. */
export type KeyReaders = {
  readKey: (source: { env: string } | { file: string }) => Hex;
  readSecret: (source: { env: string } | { file: string }) => string;
  readText: (file: string) => string;
};

/**
 * Opens the keys of a network's lanes. Throws ConfigError if a source has no key, ChainError `wrong_key`, and for
 * keys in a KMS `signer_unavailable` or `signer_refused`.
 */
export async function openEvmKeys(network: EvmNetwork, readers: KeyReaders): Promise<EvmKeys> {
  const open = ({ address, key }: { address: string; key: KeySource }) => openSigner(address, key, readers);
  return { lanes: await Promise.all(network.lanes.map(open)) };
}

/** Opens the treasury's key only. Throws the same errors as `openEvmKeys`. */
export function openTreasury({ treasury }: EvmNetwork, readers: KeyReaders): Promise<Signer> {
  return openSigner(treasury.address, treasury.key, readers);
}

/**
 * Opens one key. Throws the same errors as `openEvmKeys`. The client libraries of cloud services are loaded only if a key
 * needs them.
 */
export async function openSigner(address: string, key: KeySource, readers: KeyReaders): Promise<Signer> {
  if ("awsKms" in key) {
    const { openAwsKmsKey } = await import("./aws-kms.ts");
    return createRemoteSigner(address, openAwsKmsKey(key.awsKms));
  }
  if ("googleKms" in key) {
    const { openGoogleKmsKey } = await import("./google-kms.ts");
    return createRemoteSigner(address, openGoogleKmsKey(key.googleKms));
  }
  if ("keystore" in key) {
    const opened = await decryptKeystore(readers.readText(key.keystore), readers.readSecret(key.password));
    return createLocalSigner(address, opened);
  }
  return createLocalSigner(address, readers.readKey(key));
}
