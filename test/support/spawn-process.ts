import { fileURLToPath } from "node:url";
import { launchProcess, type ProcessOptions, type ServiceProcess, waitReady } from "../../local/service-process.ts";
import { builtService } from "./built-service.ts";
import { addCleanup } from "./cleanups.ts";
import { inRole } from "./database-roles.ts";
import { inRedisRole } from "./redis-roles.ts";

type Options = Omit<ProcessOptions, "build"> & {
  /** The folder of another release's build; this release's own when unset. */
  build?: string | undefined;
};

/** Node's arguments in tests: processes write their compile cache soon after their start, because most are killed. */
export const testNodeArgs = ["--import", fileURLToPath(new URL("./compile-cache-preload.js", import.meta.url))];

/** The roles by which a process connects to the database and to Redis. */
const roles = { api: "api", worker: "worker", "bull-board": "board" } as const;

export type SpawnedProcess = ServiceProcess & {
  /** Returns its parsed log lines, without lines that are not JSON. */
  records(): Record<string, unknown>[];
};

/**
 * Starts a process of the built service on free ports with this environment. `DATABASE_URL` names the database of its owner;
 * and `REDIS_URL` a Redis; the process connects to both in its own role. Waits until the process is ready and kills it when the file is over.
 */
export async function spawnProcess({ readyMs, ...options }: Options & { readyMs?: number }): Promise<SpawnedProcess> {
  const started = await spawnUnready(options);
  await waitReady(started, readyMs);
  return started;
}

/** Starts a process as `spawnProcess` does, but does not wait until it is ready. */
export async function spawnUnready(options: Options): Promise<SpawnedProcess> {
  const { role } = options;
  // The signer opens neither the database nor Redis.
  const given =
    role === "signer" ? options.env : await inRedisRole(roles[role], await inRole(roles[role], options.env));
  const started = await launchProcess({ build: builtService, ...options, env: given, nodeArgs: testNodeArgs });
  addCleanup(() => started.kill("SIGKILL"));
  return { ...started, records: () => started.lines.flatMap(parseLine) };
}

function parseLine(line: string): Record<string, unknown>[] {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null ? [parsed as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}
