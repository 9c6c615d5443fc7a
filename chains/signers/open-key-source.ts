import type { KeySource, SecretSource } from "../../runtime/networks/read-networks.ts";
import { decryptKeystore } from "./keystore-file.ts";
import type { RemoteKey, SigningScheme } from "./remote-key.ts";

/** Functions that read the key sources of a networks file: a plain EVM key, any secret, a file. Each throws ConfigError. */
export type KeyReaders = {
  readKey: (source: SecretSource) => `0x${string}`;
  readSecret: (source: SecretSource) => string;
  readText: (file: string) => string;
};

/** Where a key source leads: to a key in a service, to 32 secret bytes, or to a plain key in the form of its chain family. */
export type OpenedKeySource = { remote: RemoteKey } | { secret: Buffer } | { plain: SecretSource };

/**
 * Opens a key source of a networks file. Throws ConfigError, and ChainError `wrong_key` for a keystore that cannot be
 * decrypted. The client libraries of cloud services are loaded only if a key needs them.
 */
export async function openKeySource(
  source: KeySource,
  scheme: SigningScheme,
  readers: Pick<KeyReaders, "readSecret" | "readText">,
): Promise<OpenedKeySource> {
  if ("awsKms" in source) {
    const { openAwsKmsKey } = await import("./aws-kms.ts");
    return { remote: openAwsKmsKey(source.awsKms, scheme) };
  }
  if ("googleKms" in source) {
    const { openGoogleKmsKey } = await import("./google-kms.ts");
    return { remote: openGoogleKmsKey(source.googleKms, scheme) };
  }
  if ("keystore" in source)
    return { secret: await decryptKeystore(readers.readText(source.keystore), readers.readSecret(source.password)) };
  return { plain: source };
}
