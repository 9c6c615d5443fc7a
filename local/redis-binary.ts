import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { unpackDebianPackage } from "./debian-packages.ts";
import { findProgram, programFrom } from "./find-program.ts";
import type { Say } from "./service.ts";

export type RedisProgram = { program: string; env?: Record<string, string> };

/** Finds redis-server: REDIS_SERVER, the PATH, or Debian's package, unpacked into .local. Returns undefined without all three. */
export async function findRedis(say: Say | undefined): Promise<RedisProgram | undefined> {
  const program = programFrom("REDIS_SERVER") ?? findProgram("redis-server", ["/usr/bin", "/usr/local/bin"]);
  if (program !== undefined) return { program };
  const root = await unpackDebianPackage("redis-server", say);
  return root === undefined ? undefined : await programIn(root);
}

async function programIn(root: string): Promise<RedisProgram | undefined> {
  const program = join(root, "usr", "bin", "redis-server");
  if (findProgram("redis-server", [join(root, "usr", "bin")]) === undefined) return undefined;
  const places = await Promise.all([libraries(join(root, "usr", "lib")), libraries(join(root, "lib"))]);
  return { program, env: { LD_LIBRARY_PATH: places.flat().join(":") } };
}

/** Returns the folders of libraries, which Debian names after the platform, such as x86_64-linux-gnu. */
async function libraries(folder: string): Promise<string[]> {
  const inside = await readdir(folder).catch(() => []);
  return inside.filter((name) => name.includes("-linux-gnu")).map((name) => join(folder, name));
}
