import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { findProgram } from "./find-program.ts";
import type { Say } from "./service.ts";

const run = promisify(execFile);

/**
 * Unpacks a Debian package, and those that it needs and this machine lacks, into `.local/packages` the first time. It
 * installs nothing and needs no root. Returns the folder, or undefined without Debian's programs or when the download fails.
 */
export async function unpackDebianPackage(name: string, say: Say | undefined): Promise<string | undefined> {
  const kept = resolve(".local", "packages", name);
  if (existsSync(kept)) return kept;
  if (findProgram("apt-get") === undefined || findProgram("dpkg") === undefined) return undefined;
  say?.(`downloading Debian's package ${name} (once)`);
  await mkdir(resolve(".local", "packages"), { recursive: true });
  const fresh = await mkdtemp(resolve(".local", "packages", `${name}-new-`));
  try {
    await fetchPackages(name, join(fresh, "apt"), join(fresh, "root"));
    // Two runs may both reach this line. Their folders are equal, and the first one stays.
    await rename(join(fresh, "root"), kept).catch(() => undefined);
    return kept;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : "no reason given";
    say?.(`${name} could not be downloaded: ${reason}`);
    return undefined;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** Downloads with separate package lists, so that neither root nor an earlier `apt-get update` is needed. */
async function fetchPackages(name: string, apt: string, root: string): Promise<void> {
  await mkdir(join(apt, "lists", "partial"), { recursive: true });
  await mkdir(join(apt, "cache", "archives", "partial"), { recursive: true });
  await mkdir(root, { recursive: true });
  const settings = [`Dir::State::lists=${apt}/lists`, `Dir::Cache=${apt}/cache`, "Debug::NoLocking=1"];
  if (process.getuid?.() === 0) settings.push("APT::Sandbox::User=root");
  const options = settings.flatMap((setting) => ["-o", setting]);
  const limit = { timeout: 120_000, cwd: apt };
  await run("apt-get", [...options, "-q", "update"], limit);
  // A simulated installation lists exactly the packages that this machine lacks.
  const plan = await run("apt-get", [...options, "-s", "--no-install-recommends", "install", name], limit);
  const names = [...plan.stdout.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? "");
  await run("apt-get", [...options, "-q", "download", ...names], limit);
  for (const file of await readdir(apt)) {
    if (file.endsWith(".deb")) await run("dpkg", ["-x", join(apt, file), root], limit);
  }
}
