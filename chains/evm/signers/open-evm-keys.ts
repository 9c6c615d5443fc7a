import { bytesToHex } from "viem";
import type { EvmNetwork, KeySource } from "../../../runtime/networks/read-networks.ts";
import { type KeyReaders, type NeededKeys, openKeySource } from "../../signers/open-key-source.ts";
import { createLocalSigner } from "./local-signer.ts";
import { createRemoteSigner } from "./remote-signer.ts";
import type { Signer } from "./signer.ts";

/** The opened keys of a network; only worker processes hold them. A key that the process does not need is not opened. */
export type EvmKeys = { treasury: Signer | undefined; lanes: readonly Signer[] };

/**
 * Opens the needed keys that a networks file names. Throws ConfigError if a source has no key, ChainError `wrong_key`, and
 * for keys in a KMS `signer_unavailable` or `signer_refused`.
 */
export async function openEvmKeys(network: EvmNetwork, readers: KeyReaders, needed: NeededKeys): Promise<EvmKeys> {
  const open = ({ address, key }: { address: string; key: KeySource }) => openSigner(address, key, readers);
  const [treasury, ...lanes] = await Promise.all([
    needed.treasury ? open(network.treasury) : undefined,
    ...(needed.lanes ? network.lanes.map(open) : []),
  ]);
  return { treasury, lanes: lanes.filter((lane) => lane !== undefined) };
}

/** Opens one key. Throws the same errors as `openEvmKeys`. */
export async function openSigner(address: string, key: KeySource, readers: KeyReaders): Promise<Signer> {
  const opened = await openKeySource(key, "secp256k1", readers);
  if ("remote" in opened) return createRemoteSigner(address, opened.remote);
  const secret = "secret" in opened ? bytesToHex(opened.secret) : readers.readKey(opened.plain);
  return createLocalSigner(address, secret);
}
