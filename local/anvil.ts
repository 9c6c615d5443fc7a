import { rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type CreateAnvilOptions, createAnvil } from "@viem/anvil";
import { withTimeout } from "../runtime/timeout.ts";
import { tiedToParent } from "./child-process.ts";
import { startContainer } from "./container.ts";
import { findProgram, programFrom } from "./find-program.ts";
import { freePort } from "./free-ports.ts";
import { makeScratch } from "./scratch-folder.ts";
import type { Say, Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

export type AnvilOptions = {
  port?: number;
  chainId?: number;
  /** Seconds between blocks; a block per transaction when unset. */
  blockTime?: number;
  /** Blocks per epoch: `safe` is one epoch behind the newest block, `finalized` two. */
  slotsInAnEpoch?: number;
  /** Starts as a fork of the chain at this URL. */
  forkUrl?: string;
  /**
   * Starts with the blocks and states of another Anvil, which `saveState` has written to this file. A fork reads what it needs when
   * it needs it, and can block for good while it reads the states of old blocks (github.com/foundry-rs/foundry/issues/8293).
   * A container does not see the file.
   */
  stateFile?: string;
  /**
   * Makes thousands of empty blocks in seconds: with the rules of Cancun, since Prague stores the hash of every block in the
   * state, and with the states of the newest 128 blocks only, as nodes keep them that are no archives.
   */
  manyBlocks?: boolean;
  /** Accounts created at genesis. A fork fetches each of them first, so forks in tests create none. */
  accounts?: number;
  say?: Say;
};

/** The default chain id of a local chain. */
export const localChainId = 31_337;

const missing = "Anvil was not found: install Foundry (or start Docker), or set ANVIL_BIN to its program";

/** Starts an Anvil from ANVIL_BIN, the PATH, the package of this platform, or a container. Its state is lost when it stops. */
export async function startAnvil(options: AnvilOptions = {}): Promise<Service> {
  const program = programFrom("ANVIL_BIN") ?? findProgram("anvil") ?? packaged();
  const port = options.port ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  if (program !== undefined) return await fromBinary(options, program, port, url);
  options.say?.("starting Anvil in a container");
  const command = ["--host", "0.0.0.0", "--port", "8545", ...containerFlags(options)];
  const image = { image: "ghcr.io/foundry-rs/foundry:stable", inside: 8545, outside: port, entrypoint: ["anvil"] };
  const container = await startContainer({ ...image, command, url, ready: () => answers(url) });
  if (container === undefined) throw new Error(missing);
  return container;
}

const gasLimit = 100_000_000;

/**
 * The most transactions in a block, far more than any block holds. From this number of ready transactions on, an Anvil that mines
 * per transaction stops mining for good (docs/testing.md#anvil); its own limit of 1,000 is reached within seconds.
 */
const maxTransactions = 1_000_000;

/** Blocks whose states are kept with `manyBlocks`. */
const statesKept = 128;

/** Returns the options of @viem/anvil. A fork fetches state from the other chain and does not cache it on disk. */
function settings(options: AnvilOptions): CreateAnvilOptions {
  const { chainId = localChainId, blockTime, slotsInAnEpoch, manyBlocks, forkUrl, stateFile, accounts = 1 } = options;
  // The package's list of rules ends before Cancun.
  const hardfork = "Cancun" as NonNullable<CreateAnvilOptions["hardfork"]>;
  const many = manyBlocks ? { hardfork, pruneHistory: statesKept } : {};
  const fork = forkUrl === undefined ? {} : { forkUrl, noRateLimit: true, noStorageCaching: true, retries: 5 };
  const epochs = slotsInAnEpoch === undefined ? {} : { slotsInAnEpoch };
  // The package does not know this option, and passes it on all the same.
  const limits = { gasLimit, maxTransactions };
  return {
    chainId,
    accounts,
    ...limits,
    ...(blockTime === undefined ? {} : { blockTime }),
    ...epochs,
    ...many,
    ...fork,
    ...(stateFile === undefined ? {} : { loadState: stateFile }),
  };
}

function containerFlags({
  chainId = localChainId,
  blockTime,
  slotsInAnEpoch,
  manyBlocks,
  forkUrl,
}: AnvilOptions): string[] {
  const flags = ["--chain-id", String(chainId), "--gas-limit", String(gasLimit), "--silent"];
  flags.push("--max-transactions", String(maxTransactions));
  if (blockTime !== undefined) flags.push("--block-time", String(blockTime));
  if (slotsInAnEpoch !== undefined) flags.push("--slots-in-an-epoch", String(slotsInAnEpoch));
  if (manyBlocks) flags.push("--hardfork", "cancun", "--prune-history", String(statesKept));
  // Inside the container 127.0.0.1 is the container.
  if (forkUrl !== undefined)
    flags.push("--fork-url", forkUrl.replace(/127\.0\.0\.1|localhost/, "host.docker.internal"));
  return flags;
}

async function fromBinary(options: AnvilOptions, program: string, port: number, url: string): Promise<Service> {
  let running: Running | undefined;
  let states: string | undefined;
  async function start(): Promise<void> {
    options.say?.(options.forkUrl === undefined ? "starting Anvil" : "starting Anvil as a fork");
    // Anvil writes the states of older blocks to its user's home folder, where a killed Anvil would leave them for good.
    states = await makeScratch("anvil-states");
    // The package does not know this option, and passes it on all the same.
    const folder = { cachePath: states };
    running = await launch({ ...settings(options), ...folder, anvilBinary: program, port });
    await waitUntil("Anvil answers", () => answers(url), { withinMs: 60_000 });
    // Anvil would write a line for each call into a pipe that no one reads.
    await rpc(url, "anvil_setLoggingEnabled", [false]);
  }
  await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    await running?.end(signal);
    if (states !== undefined) await rm(states, { recursive: true, force: true });
  };
  const stop = () => end("SIGTERM");
  return {
    url,
    pid: () => (running?.isGone() === false ? running.pid : undefined),
    stop,
    kill: end,
    start,
    close: stop,
  };
}

type Running = { pid: number; isGone(): boolean; end(signal: NodeJS.Signals): Promise<void> };

/** Starts Anvil through a shell that prints its process id and then becomes Anvil, because @viem/anvil does not expose the id. */
async function launch(options: CreateAnvilOptions): Promise<Running> {
  const printPid = 'echo "pid $$"; exec "$@"';
  const anvil = createAnvil({
    ...options,
    // The default, ten seconds, is less than a slow machine takes.
    startTimeout: 60_000,
    execArgs([command, args, rest]) {
      const [program, line] = tiedToParent(command, args, "SIGKILL");
      // `reject: false`: an Anvil that a test kills must not become an unhandled rejection of ours.
      return ["sh", ["-c", printPid, "sh", program, ...line], { ...rest, reject: false, detached: true }];
    },
  });
  let pid = 0;
  let isGone = false;
  anvil.on("stdout", (text) => {
    pid ||= Number(/^pid (\d+)/.exec(text)?.[1] ?? 0);
  });
  const gone = new Promise<void>((resolve) => {
    anvil.on("exit", () => {
      isGone = true;
      resolve();
    });
  });
  await anvil.start();
  return {
    pid,
    isGone: () => isGone,
    async end(signal) {
      if (isGone) return;
      process.kill(pid, signal);
      await withTimeout(gone, 5_000, "stopping Anvil").catch(() => process.kill(pid, "SIGKILL"));
      await gone;
    },
  };
}

/** Returns the binary in the package of this platform, an optional dependency that may be missing. */
function packaged(): string | undefined {
  try {
    const found = createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${process.platform}-amd64/package.json`);
    return findProgram("anvil", [join(dirname(found), "bin")]);
  } catch {
    return undefined;
  }
}

/** Writes the blocks of an Anvil, and the state of each, to a file. */
export async function saveState(url: string, file: string): Promise<void> {
  const dump = await rpc(url, "anvil_dumpState", [true]);
  if (typeof dump !== "string") throw new Error("Anvil did not dump its state");
  await writeFile(file, gunzipSync(Buffer.from(dump.slice(2), "hex")));
}

const answers = async (url: string): Promise<boolean> => (await rpc(url, "eth_chainId")) !== undefined;

/** Makes one JSON-RPC call without a client. Returns undefined when there is no answer or it is an error. */
export async function rpc(url: string, method: string, params: unknown[] = []): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body }).catch(() => undefined);
  const answer: unknown = await response?.json().catch(() => undefined);
  return typeof answer === "object" && answer !== null && "result" in answer ? answer.result : undefined;
}
