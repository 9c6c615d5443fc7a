import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { findProgram, programFrom } from "./find-program.ts";
import type { Say } from "./service.ts";

export type RedisProgram = { program: string; env?: Record<string, string> };

const run = promisify(execFile);

/** Finds redis-server: REDIS_SERVER, the PATH, or Debian's package, unpacked into .local. Returns undefined without all three. */
export async function findRedis(say: Say | undefined): Promise<RedisProgram | undefined> {
  const program = programFrom("REDIS_SERVER") ?? findProgram("redis-server", ["/usr/bin", "/usr/local/bin"]);
  if (program !== undefined) return { program };
  return await unpackPackage(say);
}

/** Unpacks Debian's redis-server and the libraries that this machine lacks. It installs nothing and needs no root. */
async function unpackPackage(say: Say | undefined): Promise<RedisProgram | undefined> {
  const kept = resolve(".local", "packages", "redis");
  const before = await programIn(kept);
  if (before !== undefined) return before;
  if (findProgram("apt-get") === undefined || findProgram("dpkg") === undefined) return undefined;
  say?.("downloading the Redis package of Debian (once)");
  await mkdir(resolve(".local", "packages"), { recursive: true });
  const fresh = await mkdtemp(resolve(".local", "packages", "redis-new-"));
  try {
    await fetchPackages(join(fresh, "apt"), join(fresh, "root"));
    // Two runs may both reach this line. Their folders are equal, and the first one stays.
    await rename(join(fresh, "root"), kept).catch(() => undefined);
    return await programIn(kept);
  } catch (cause) {
    say?.(
      `Redis could not be downloaded: ${cause instanceof Error ? cause.message.split("\n", 1)[0] : "no reason given"}`,
    );
    return undefined;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Downloads with separate package lists, so that neither root nor an earlier `apt-get update` is needed. */
async function fetchPackages(apt: string, root: string): Promise<void> {
  await mkdir(join(apt, "lists", "partial"), { recursive: true });
  await mkdir(join(apt, "cache", "archives", "partial"), { recursive: true });
  await mkdir(root, { recursive: true });
  const settings = [`Dir::State::lists=${apt}/lists`, `Dir::Cache=${apt}/cache`, "Debug::NoLocking=1"];
  if (process.getuid?.() === 0) settings.push("APT::Sandbox::User=root");
  const options = settings.flatMap((setting) => ["-o", setting]);
  const limit = { timeout: 120_000, cwd: apt };
  await run("apt-get", [...options, "-q", "update"], limit);
  // A simulated installation lists exactly the packages that this machine lacks.
  const plan = await run("apt-get", [...options, "-s", "--no-install-recommends", "install", "redis-server"], limit);
  const names = [...plan.stdout.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? "");
  await run("apt-get", [...options, "-q", "download", ...names], limit);
  for (const file of await readdir(apt)) {
    if (file.endsWith(".deb")) await run("dpkg", ["-x", join(apt, file), root], limit);
  }
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
