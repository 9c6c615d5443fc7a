import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeScratch } from "../../local/scratch-folder.ts";

/** The version of x402 that is measured. */
export const PEER_VERSION = "2.27.0";

const packages = {
  "@x402/core": PEER_VERSION,
  "@x402/evm": PEER_VERSION,
  // What the example of x402's documentation runs on, and the newest viem that both it and this project accept.
  express: "5.3.0",
  viem: "2.57.1",
};

/** The packages of the peer could not be installed. */
export class PeerMissing extends Error {
  override readonly name = "PeerMissing";
}

/**
 * Installs the published packages of x402 into a new folder in the system's temporary folder, and returns the folder. They run
 * no install script, and never become dependencies of this project. Throws PeerMissing without access to the npm registry.
 */
export async function installPeer(): Promise<string> {
  const folder = await makeScratch("x402");
  await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: packages }));
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0"];
  try {
    await promisify(execFile)("npm", ["install", ...flags], { cwd: folder, timeout: 300_000 });
  } catch (error) {
    const reason = /npm error code (\w+)/.exec(error instanceof Error ? error.message : "")?.[1] ?? "npm failed";
    await rm(folder, { recursive: true, force: true });
    throw new PeerMissing(`--peer needs the npm registry: x402 ${PEER_VERSION} could not be installed (${reason})`);
  }
  return folder;
}
