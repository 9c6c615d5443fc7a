import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Networks, readNetworks } from "../runtime/networks/read-networks.ts";
import { createStore } from "../signer/create-store.ts";
import { makeScratch } from "./scratch-folder.ts";

/** Whole units of an asset that leave the treasury of the local stack at most within an hour; no test reaches it. */
const UNITS = 1_000_000_000n;

/**
 * Writes the limits file of the local stack and creates an empty store, because the chains of each run are new. Returns the
 * environment of the signer, and the address at which workers reach it. `dir` keeps the files; the socket is in the system's
 * temporary folder, because its path must be short.
 */
export async function prepareSigner(
  dir: string,
  networksFile: string,
): Promise<{ env: Record<string, string>; address: string }> {
  const store = join(dir, "signer.sqlite");
  createEmptyStore(store);
  const limits = join(dir, "limits.jsonc");
  await writeFile(limits, JSON.stringify(describeLimits(readNetworks(networksFile)), null, 2));
  const address = `unix:${join(await makeScratch("signer"), "signer.sock")}`;
  const env = { SIGNER_LISTEN: address, SIGNER_STORE: store, SIGNER_LIMITS_FILE: limits, NETWORKS_FILE: networksFile };
  return { env, address };
}

/** Creates a store of the signer without records, in place of an earlier one. */
export function createEmptyStore(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file, { force: true });
  createStore(path, { command: "init", at: new Date() }).close();
}

/** Returns a limits file that lets every asset of a local chain pass. A changed destination applies at once, as for the local account. */
export function describeLimits(networks: Pick<Networks, "chains">) {
  const assets = networks.chains.flatMap((chain) =>
    chain.assets.map(({ asset, decimals }) => {
      const most = String(UNITS * 10n ** BigInt(decimals));
      return [asset, { perPayout: most, perMerchantDay: most, newMerchantPerDay: most, perHour: most }] as const;
    }),
  );
  return { paused: false, destinationWaitingHours: 0, assets: Object.fromEntries(assets) };
}
