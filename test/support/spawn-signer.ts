import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScratch } from "../../local/scratch-folder.ts";
import { createLog } from "../../runtime/log.ts";
import { createSignerClient } from "../../signer/client.ts";
import { createStore } from "../../signer/store.ts";
import { addCleanup } from "./cleanups.ts";
import { spawnProcess } from "./spawn-process.ts";
import { limitsDocument } from "./test-signer.ts";

/**
 * Starts a signer in a process of its own, on a Unix socket. `env` has the keys that the networks document names. Returns a
 * worker's connection to it.
 */
export async function spawnSigner(
  document: Record<string, unknown>,
  assets: readonly string[],
  env: Record<string, string>,
) {
  const folder = await makeScratch("signer-process");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const file = (name: string) => join(folder, name);
  createStore(file("signer.sqlite")).close();
  await writeFile(file("networks.json"), JSON.stringify(document));
  await writeFile(file("limits.jsonc"), JSON.stringify(limitsDocument(assets)));
  const socketPath = file("signer.sock");
  const process = await spawnProcess({
    role: "signer",
    env: {
      NETWORKS_FILE: file("networks.json"),
      SIGNER_LISTEN: `unix:${socketPath}`,
      SIGNER_STORE: file("signer.sqlite"),
      SIGNER_LIMITS_FILE: file("limits.jsonc"),
      ...env,
    },
  });
  const signer = createSignerClient({ socketPath }, { log: createLog({ level: "silent", role: "test" }) });
  addCleanup(async () => signer.close());
  return { process, signer };
}
