import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import selfsigned from "selfsigned";
import { addCleanup } from "./cleanups.ts";

const script = fileURLToPath(new URL("../../ops/compose/make-secrets.sh", import.meta.url));

/** The folder of secrets that the compose file mounts, and its files. */
export type MadeSecrets = { dir: string; path: (name: string) => string; read: (name: string) => Promise<string> };

/** Renews the certificates of the servers, as an operator does. */
export const renewCertificates = ({ dir }: MadeSecrets) => promisify(execFile)("sh", [script, "renew", dir]);

/** Makes the secrets of the compose file, as an operator does. */
export async function makeSecrets(): Promise<MadeSecrets> {
  const parent = await mkdtemp(join(tmpdir(), "secrets-"));
  addCleanup(() => rm(parent, { recursive: true, force: true }));
  const dir = join(parent, "secrets");
  await promisify(execFile)("sh", [script, dir]);
  const path = (name: string) => join(dir, name);
  return { dir, path, read: async (name) => (await readFile(path(name), "utf8")).trim() };
}

/** Returns the certificate of another authority of the same name. Its EC key takes far less processor time than RSA keys. */
export async function makeOtherAuthority(): Promise<string> {
  const { cert } = await selfsigned.generate([{ name: "commonName", value: "payment service" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  return cert;
}
