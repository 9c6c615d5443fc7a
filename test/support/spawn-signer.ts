import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeScratch } from "../../local/scratch-folder.ts";
import { createLog } from "../../runtime/log.ts";
import { createSignerClient } from "../../signer/client.ts";
import { createStore } from "../../signer/create-store.ts";
import { addCleanup } from "./cleanups.ts";
import { spawnProcess } from "./spawn-process.ts";
import { limitsDocument } from "./test-signer.ts";

/**
 * Starts a signer in a process of its own, on a Unix socket. `env` has the keys that the networks document names, `change` is what
 * differs in its limits. Returns a worker's connection to it, and a function that starts it again after it was killed.
 */
export async function spawnSigner(
  document: Record<string, unknown>,
  assets: readonly string[],
  env: Record<string, string>,
  change: Parameters<typeof limitsDocument>[1] = {},
) {
  const folder = await makeScratch("signer-process");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const file = (name: string) => join(folder, name);
  createStore(file("signer.sqlite"), { command: "init", at: new Date() }).close();
  await writeFile(file("networks.json"), JSON.stringify(document));
  await writeFile(file("limits.jsonc"), JSON.stringify(limitsDocument(assets, change)));
  const socketPath = file("signer.sock");
  const start = () =>
    spawnProcess({
      role: "signer",
      env: {
        NETWORKS_FILE: file("networks.json"),
        SIGNER_LISTEN: `unix:${socketPath}`,
        SIGNER_STORE: file("signer.sqlite"),
        SIGNER_LIMITS_FILE: file("limits.jsonc"),
        ...env,
      },
    });
  const process = await start();
  const signer = createSignerClient({ socketPath }, { log: createLog({ level: "silent", role: "test" }) });
  addCleanup(async () => signer.close());
  return { process, signer, socketPath, start };
}
