import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import selfsigned from "selfsigned";
import { makeScratch } from "../../local/scratch-folder.ts";
import { addCleanup } from "./cleanups.ts";

const ec = { keyType: "ec", algorithm: "sha256" } as const;

/** A private CA, and the functions that issue certificates to the signer and to its clients. */
export async function makeCertificates() {
  const folder = await makeScratch("certificates");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const ca = await selfsigned.generate([{ name: "commonName", value: "test CA" }], {
    ...ec,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, digitalSignature: true },
    ],
  });
  const caFile = join(folder, "ca.pem");
  await writeFile(caFile, ca.cert);
  /** Issues a certificate for 127.0.0.1. Returns the variables that name its files. */
  const issue = async (name: string): Promise<Record<string, string>> => {
    const issued = await selfsigned.generate([{ name: "commonName", value: name }], {
      ...ec,
      ca: { key: ca.private, cert: ca.cert },
      extensions: [
        { name: "basicConstraints", cA: false },
        { name: "keyUsage", digitalSignature: true },
        { name: "extKeyUsage", serverAuth: true, clientAuth: true },
        { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
      ],
    });
    const [SIGNER_CERT_FILE, SIGNER_KEY_FILE] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
    await writeFile(SIGNER_CERT_FILE, issued.cert);
    await writeFile(SIGNER_KEY_FILE, issued.private, { mode: 0o600 });
    return { SIGNER_CA_FILE: caFile, SIGNER_CERT_FILE, SIGNER_KEY_FILE };
  };
  return { ca: ca.cert, issue };
}
