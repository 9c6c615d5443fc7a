import { rm, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { type Child, startChild } from "./child-process.ts";
import { startContainer } from "./container.ts";
import { freePort } from "./free-ports.ts";
import { findRedis, type RedisProgram } from "./redis-binary.ts";
import { makeScratch } from "./scratch-folder.ts";
import { givenService, type Say, type Service } from "./service.ts";
import { waitUntil } from "./wait-until.ts";

export type RedisOptions = {
  dir?: string;
  /** Keeps an append-only file, as a real deployment does. */
  appendOnly?: boolean;
  port?: number;
  say?: Say;
  /** Further settings, as the command line of redis-server takes them. They need a program on this machine. */
  settings?: readonly string[];
  /** Ignores REDIS_URL; for tests that flush, stop and start the server. */
  own?: boolean;
};

const missing = "Redis was not found: install redis-server (or start Docker), or set REDIS_URL or REDIS_SERVER to one";

/**
 * Starts an empty Redis that never evicts keys. It uses the first of: REDIS_URL, REDIS_SERVER, a redis-server on this machine,
 * Debian's package unpacked into .local, a container.
 */
export async function startRedis(options: RedisOptions = {}): Promise<Service> {
  const given = process.env["REDIS_URL"];
  if (options.own !== true && given !== undefined && given !== "") return givenService(given, "REDIS_URL");
  const found = await findRedis(options.say);
  const port = options.port ?? (await freePort());
  const keep = options.appendOnly === true ? ["--appendonly", "yes"] : ["--appendonly", "no"];
  const flags = ["--maxmemory-policy", "noeviction", "--save", "", ...keep, ...(options.settings ?? [])];
  if (found !== undefined) return await fromBinary(options, found, port, flags);
  if (options.settings !== undefined) throw new Error(missing);
  options.say?.("starting Redis in a container");
  const url = `redis://127.0.0.1:${port}`;
  const inside = { image: "redis:7-bookworm", inside: 6379, outside: port };
  // Connections come from outside the container, and protected mode would refuse them.
  const command = ["--protected-mode", "no", "--aclfile", "/data/users.acl", ...flags];
  const entrypoint = ["sh", "-c", 'touch /data/users.acl && exec redis-server "$@"', "sh"];
  const container = await startContainer({ ...inside, entrypoint, command, url, ready: () => answers(port) });
  if (container === undefined) throw new Error(missing);
  return container;
}

async function fromBinary(options: RedisOptions, found: RedisProgram, port: number, flags: string[]): Promise<Service> {
  const folder = await makeScratch("redis", options.dir === undefined ? {} : { parent: options.dir });
  // Users that are created later outlive a restart.
  const users = join(folder, "users.acl");
  await writeFile(users, "");
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--aclfile", users, ...flags];
  let server: Child | undefined;
  async function start(): Promise<void> {
    options.say?.("starting Redis");
    const child = await startChild(found.program, args, { env: { ...process.env, ...found.env }, cwd: folder });
    server = child;
    const ask = () => {
      if (child.isGone()) throw new Error("the process has ended");
      return answers(port);
    };
    await waitUntil("Redis answers", ask, { withinMs: 60_000 }).catch((cause) => {
      throw new Error(`Redis did not start:\n${child.tail()}`, { cause });
    });
  }
  await start().catch(async (error) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => server?.end(signal);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: () => (server?.isGone() === false ? server.pid : undefined),
    stop: () => end("SIGTERM"),
    kill: end,
    start,
    async close() {
      await end("SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Sends one PING without a client library, which would retry on its own. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1", timeout: 1_000 });
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => socket.write("PING\r\n"));
    // It answers -LOADING while it reads its append-only file.
    socket.once("data", (data) => end(data.toString().startsWith("+PONG")));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}
