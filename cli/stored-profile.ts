import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CliError } from "./cli-error.ts";
import type { Terminal } from "./terminal.ts";
import { profileFile } from "./user-folders.ts";

/** What `pay login` stores. */
export type Profile = { url: string; apiKey: string; merchantId: string };

function isProfile(value: unknown): value is Profile {
  if (typeof value !== "object" || value === null) return false;
  return ["url", "apiKey", "merchantId"].every((name) => typeof Reflect.get(value, name) === "string");
}

/** Returns the stored profile; undefined when there is none. Throws CliError for a damaged file. */
export async function readProfile(env: Terminal["env"]): Promise<Profile | undefined> {
  const file = profileFile(env);
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const content: unknown = JSON.parse(text);
    if (isProfile(content)) return content;
  } catch {
    // It is damaged, as below.
  }
  throw new CliError(`${file} is damaged: run \`pay login\` again`);
}

/** Stores the profile in a file that only this user can read. Returns its path. */
export async function writeProfile(env: Terminal["env"], { url, apiKey, merchantId }: Profile): Promise<string> {
  const file = profileFile(env);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const fresh = `${file}.${process.pid}.new`;
  await writeFile(fresh, `${JSON.stringify({ url, apiKey, merchantId }, null, 2)}\n`, { mode: 0o600 });
  await rename(fresh, file);
  return file;
}

/** Removes the stored profile. Returns false when there was none. */
export async function removeProfile(env: Terminal["env"]): Promise<boolean> {
  const isThere = (await readFile(profileFile(env)).catch(() => undefined)) !== undefined;
  await rm(profileFile(env), { force: true });
  return isThere;
}
