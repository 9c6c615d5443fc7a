import { readFileSync } from "node:fs";
import type { Chains } from "../chains/chain.ts";
import type { PayoutSigner } from "../chains/payout-signer.ts";
import { ConfigError, type SignerTarget } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import type { Certificates } from "./certificates.ts";
import { createSignerClient } from "./client.ts";
import { createEmbeddedSigner } from "./embedded-signer.ts";
import type { TreasurySigner } from "./treasury-signer.ts";

/**
 * Opens the signer that the environment of a worker names. Throws ConfigError for an address without its certificates.
 * @param deps.treasuryKeys the keys of an embedded signer, by CAIP-2 id; chains may be added later
 */
export function openSigner(
  target: SignerTarget,
  deps: { treasuryKeys: ReadonlyMap<string, PayoutSigner>; chains: Chains; deployment: string; log: Log },
): TreasurySigner {
  const { SIGNER: address } = target;
  if (address === "embedded") {
    deps.log.warn("SIGNER=embedded: this process holds the treasury's keys and signs whatever the database asks for");
    return createEmbeddedSigner(deps);
  }
  if (address?.startsWith("unix:")) return createSignerClient({ socketPath: address.slice("unix:".length) }, deps);
  if (address?.startsWith("https:"))
    return createSignerClient({ url: address, readCertificates: () => readCertificates(target) }, deps);
  throw new ConfigError("SIGNER is missing: set embedded, unix:/path or https://host:port");
}

/** Creates the signer of a process that pays nothing out: it has no keys and no connection. */
export function createKeylessSigner(deps: { chains: Chains; deployment: string; log: Log }): TreasurySigner {
  return createEmbeddedSigner({ ...deps, treasuryKeys: new Map() });
}

/** Reads the files of a TLS connection that both sides authenticate. Throws ConfigError. */
export function readCertificates(of: Omit<SignerTarget, "SIGNER">): Certificates {
  const read = (name: keyof typeof of) => {
    const file = of[name];
    if (file === undefined) throw new ConfigError(`${name} is missing: an https signer requires it`);
    try {
      return readFileSync(file);
    } catch (cause) {
      throw new ConfigError(`the file that ${name} names cannot be read`, { cause });
    }
  };
  return { ca: read("SIGNER_CA_FILE"), cert: read("SIGNER_CERT_FILE"), key: read("SIGNER_KEY_FILE") };
}
