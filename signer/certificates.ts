import type { Log } from "../runtime/log.ts";
import { describeBriefly } from "../runtime/redaction.ts";

/** The certificates of a TLS connection that both sides authenticate: the CA of the other side, the own certificate and key. */
export type Certificates = { ca: Buffer; cert: Buffer; key: Buffer };

/**
 * Returns a function that reads certificates again, for each connection: renewed ones apply without a restart. While they cannot be
 * read, it returns those that were read last. Throws the error of the first reading.
 */
export function openCertificates(read: () => Certificates, log: Pick<Log, "warn">): () => Certificates {
  let current = read();
  return () => {
    try {
      current = read();
    } catch (error) {
      log.warn({ error: describeBriefly(error) }, "certificates cannot be read again; the former ones are used");
    }
    return current;
  };
}

/** Returns true when two sets of certificates are the same. Pure. */
export function isSameCertificates(one: Certificates, other: Certificates): boolean {
  return (["ca", "cert", "key"] as const).every((name) => one[name].equals(other[name]));
}
