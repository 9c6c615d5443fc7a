import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { readArguments } from "../runtime/command-arguments.ts";

const root = fileURLToPath(new URL("../", import.meta.url));

/** The programs of the service. `<outdir>/<name>.js` starts each. */
export const programs = {
  api: "api/main.ts",
  worker: "workers/main.ts",
  signer: "signer/main.ts",
  "bull-board": "ops/bull-board/main.ts",
  migrate: "db/main.ts",
  admin: "ops/admin/main.ts",
  reconcile: "ops/reconcile/main.ts",
  preflight: "ops/preflight/main.ts",
};

/**
 * Modules that only read files of the project or compile them. A build evaluates each and contains its exports as constants:
 * a built program needs neither these files nor esbuild. They import nothing of the project.
 */
const constantModules = [
  "api/checkout/pages/style-sheet.ts",
  "api/checkout/release/script-bundles.ts",
  "db/migration-names.ts",
  "db/migrations/initial/statements.ts",
  "ops/bull-board/runbooks.ts",
  "ops/console/style-sheet.ts",
].map((path) => join(root, path));

/** Packages that a build does not contain, but loads from node_modules; `*` stands for any name. */
export const externalPackages = [
  // They load compiled code.
  ...["bufferutil", "msgpackr-extract", "secp256k1", "sharp", "utf-8-validate"],
  // They serve files of their own folders.
  ...["@bull-board/*", "@fastify/swagger-ui"],
  // It uses Node's deprecated `punycode`. Node warns of that, except in node_modules.
  "whatwg-url",
];

/** Gives CommonJS packages in a bundle the variables that Node gives them. */
const commonJsVariables = `\
import { createRequire as createRequireOfBundle } from "node:module";
const { dirname: __dirname, filename: __filename } = import.meta;
const require = createRequireOfBundle(import.meta.url);`;

/**
 * Writes every program of the service to a folder, bundled with its packages. Throws when the sources cannot be bundled; then
 * the folder stays as it was.
 */
export async function buildPrograms(outdir: string, { sourcemap }: { sourcemap: boolean }): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: programs,
    outdir: resolve(outdir),
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    // The settings of tsconfig.json that matter here; the image is built without that file.
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, target: "es2025" } },
    sourcemap,
    sourcesContent: false,
    external: externalPackages,
    // Its main file loads its other files by a `require` that no bundler sees.
    alias: { "jsonc-parser": "jsonc-parser/lib/esm/main.js" },
    banner: { js: commonJsVariables },
    plugins: [evaluateConstants],
    write: false,
    logLevel: "warning",
  });
  await writeFiles(outdir, outputFiles);
}

const evaluateConstants: Plugin = {
  name: "constants",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!constantModules.includes(path)) return undefined;
      // A new address for each build, because Node evaluates a module only once per address.
      const values: object = await import(`${pathToFileURL(path)}?${randomUUID()}`);
      const lines = Object.entries(values).map(([name, value]) => `export const ${name} = ${toSource(value)};`);
      return { contents: lines.join("\n"), loader: "js" };
    });
  },
};

/** Returns the source text of a value that consists of objects, arrays, strings and Buffers. Throws for any other value. */
export function toSource(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Buffer.isBuffer(value)) return `Buffer.from("${value.toString("base64")}", "base64")`;
  if (Array.isArray(value)) return `[${value.map(toSource).join(",")}]`;
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    throw new Error(`a build cannot contain this value: ${String(value)}`);
  const members = Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${toSource(member)}`);
  return `{${members.join(",")}}`;
}

/** Replaces the files of a folder, each at once, so that a program that starts meanwhile never reads half of a file. */
async function writeFiles(dir: string, files: readonly { path: string; contents: Uint8Array }[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const { path, contents } of files) {
    const unfinished = `${path}.${process.pid}`;
    await writeFile(unfinished, contents);
    await rename(unfinished, path);
  }
  const written = new Set(files.map(({ path }) => basename(path)));
  // Another build may be writing unfinished files.
  const old = (await readdir(dir)).filter((name) => /\.(js|map)$/.test(name) && !written.has(name));
  for (const name of old) await rm(join(dir, name), { force: true });
}

const help = `usage: npm run build

Bundles each program of the service with its packages into dist/, with source maps. The service runs there with the packages that
are not bundled (docs/operations.md).

  --help  print this text`;

if (import.meta.main) {
  readArguments(help, {});
  await buildPrograms(join(root, "dist"), { sourcemap: true });
}
