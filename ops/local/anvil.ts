import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type CreateAnvilOptions, createAnvil } from "@viem/anvil";
import { withTimeout } from "../timeout.ts";
import { findProgram, programFrom } from "./binaries.ts";
import { tiedToParent } from "./child.ts";
import { startContainer } from "./container.ts";
import { freePort } from "./ports.ts";
import type { Say, Service } from "./service.ts";
import { waitUntil } from "./wait.ts";

export type AnvilOptions = {
  port?: number;
  chainId?: number;
  /** Seconds between blocks; a block per transaction when unset. */
  blockTime?: number;
  /** Blocks of an epoch: `safe` is so many below the newest, `finalized` twice as many. */
  slotsInAnEpoch?: number;
  /** Starts as a copy of the chain behind this URL. */
  forkUrl?: string;
  /** Accounts made at genesis; each must be fetched first on a fork, so forks in tests want none. */
  accounts?: number;
  say?: Say;
};

/** The local chain's id, unless a caller wants another one. */
export const localChainId = 31_337;

const missing = "Anvil could not be found: install Foundry (or start Docker), or set ANVIL_BIN to its program";

/** An Anvil from ANVIL_BIN, the PATH, the package of this platform, or a container. What it knew is gone when it stops. */
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

/** What @viem/anvil is told; a fork reads through to the other chain and keeps no copy of it on disk. */
function settings(options: AnvilOptions): CreateAnvilOptions {
  const { chainId = localChainId, blockTime, slotsInAnEpoch, forkUrl, accounts = 1 } = options;
  const fork = forkUrl === undefined ? {} : { forkUrl, noRateLimit: true, noStorageCaching: true, retries: 5 };
  const epochs = slotsInAnEpoch === undefined ? {} : { slotsInAnEpoch };
  return { chainId, gasLimit, accounts, ...(blockTime === undefined ? {} : { blockTime }), ...epochs, ...fork };
}

function containerFlags({ chainId = localChainId, blockTime, slotsInAnEpoch, forkUrl }: AnvilOptions): string[] {
  const flags = ["--chain-id", String(chainId), "--gas-limit", String(gasLimit), "--silent"];
  if (blockTime !== undefined) flags.push("--block-time", String(blockTime));
  if (slotsInAnEpoch !== undefined) flags.push("--slots-in-an-epoch", String(slotsInAnEpoch));
  // Inside the container 127.0.0.1 is the container.
  if (forkUrl !== undefined)
    flags.push("--fork-url", forkUrl.replace(/127\.0\.0\.1|localhost/, "host.docker.internal"));
  return flags;
}

async function fromBinary(options: AnvilOptions, program: string, port: number, url: string): Promise<Service> {
  let running: Running | undefined;
  async function start(): Promise<void> {
    options.say?.(options.forkUrl === undefined ? "starting Anvil" : "starting Anvil as a fork");
    running = await launch({ ...settings(options), anvilBinary: program, port });
    await waitUntil("Anvil answers", () => answers(url), { withinMs: 20_000 });
    // It would write a line per call into a pipe that nobody reads.
    await rpc(url, "anvil_setLoggingEnabled", [false]);
  }
  await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => running?.end(signal);
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

/** @viem/anvil does not tell the process id: a shell tells it and then becomes Anvil, so that the number stays true. */
async function launch(options: CreateAnvilOptions): Promise<Running> {
  const tellPid = 'echo "pid $$"; exec "$@"';
  const anvil = createAnvil({
    ...options,
    execArgs([command, args, rest]) {
      const [program, line] = tiedToParent(command, args, "SIGKILL");
      // `reject: false`: an Anvil that a test kills must not become an unhandled rejection of ours.
      return ["sh", ["-c", tellPid, "sh", program, ...line], { ...rest, reject: false, detached: true }];
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

/** The binary in the package of this platform; an optional dependency, so it may be missing. */
function packaged(): string | undefined {
  try {
    const found = createRequire(import.meta.url).resolve(`@foundry-rs/anvil-${process.platform}-amd64/package.json`);
    return findProgram("anvil", [join(dirname(found), "bin")]);
  } catch {
    return undefined;
  }
}

const answers = async (url: string): Promise<boolean> => (await rpc(url, "eth_chainId")) !== undefined;

/** One call of JSON-RPC without a client; undefined when nobody answers or the answer is an error. */
export async function rpc(url: string, method: string, params: unknown[] = []): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body }).catch(() => undefined);
  const answer: unknown = await response?.json().catch(() => undefined);
  return typeof answer === "object" && answer !== null && "result" in answer ? answer.result : undefined;
}
