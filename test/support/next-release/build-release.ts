import { execFile } from "node:child_process";
import { cp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { releaseVersion } from "../../../db/check-schema.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { allowedImports } from "../../../scripts/check-imports.ts";
import { addCleanup } from "../cleanups.ts";
import { type SourceEdit, sourceEdits } from "./source-edits.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../../", import.meta.url));
const here = fileURLToPath(new URL("./", import.meta.url));

/** The names that the migrations of the two releases after this one get. */
export const nextMigration = `${number(1)}_payment_source`;
export const laterMigrations = [`${number(2)}_check_source`, `${number(2)}_require_source`] as const;

/** A release that comes after this one. */
export type NextRelease = {
  /** The folder of its built programs. */
  build: string;
  /** Runs one of its programs until it ends. Returns what it printed, and rejects when it fails. */
  run(program: "migrate", env: Record<string, string>): Promise<string>;
  /** Runs `migrate` of the release after it, which contracts the schema. Its other programs are not built. */
  migrateLater(databaseUrl: string): Promise<string>;
};

/**
 * Builds the next release in a scratch folder: the sources of this one with the edits and files of this folder. Throws when an
 * edit does not fit the sources any more.
 */
export async function buildNextRelease(): Promise<NextRelease> {
  const folder = await makeScratch("next-release");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const sources = [...Object.keys(allowedImports), "package.json", "package-lock.json", "tsconfig.json"];
  for (const path of sources) await cp(join(root, path), join(folder, path), { recursive: true });
  await symlink(join(root, "node_modules"), join(folder, "node_modules"));
  for (const edit of sourceEdits) await editSource(folder, edit);
  await cp(join(here, "attempt-origins.ts"), join(folder, "db/queries/attempt-origins.ts"));
  const addMigration = async (file: string, name: string) => {
    const text = await readFile(join(here, file), "utf8");
    await writeFile(join(folder, `db/migrations/${name}.ts`), text.replace('"payment-source"', `"${nextMigration}"`));
  };
  const start = async (args: string[], env: Record<string, string> = {}): Promise<string> => {
    const { stdout } = await run(process.execPath, args, { cwd: folder, env: { ...process.env, ...env } });
    return stdout.trim();
  };
  await addMigration("payment-source.ts", nextMigration);
  const build =
    'const { buildPrograms } = await import("./scripts/build.ts"); await buildPrograms("dist", { sourcemap: false })';
  await start(["--input-type=module", "-e", build]);
  return {
    build: join(folder, "dist"),
    run: (program, env) => start([`dist/${program}.js`], env),
    async migrateLater(databaseUrl) {
      await addMigration("check-source.ts", laterMigrations[0]);
      await addMigration("require-source.ts", laterMigrations[1]);
      return await start(["db/main.ts"], { DATABASE_URL: databaseUrl });
    },
  };
}

async function editSource(folder: string, { file, find, replace }: SourceEdit): Promise<void> {
  const path = join(folder, file);
  const parts = (await readFile(path, "utf8")).split(find);
  if (parts.length !== 2) throw new Error(`${file} has this text ${parts.length - 1} times: ${find}`);
  await writeFile(path, parts.join(replace));
}

/** Returns the number of the release that comes `releases` after this one, as migrations are named. */
function number(releases: number): string {
  return String(releaseVersion + releases).padStart(4, "0");
}
