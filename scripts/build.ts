import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { context, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));

/** The programs of the service. `<outdir>/<name>.js` starts each. */
const programs = {
  api: "api/main.ts",
  worker: "workers/main.ts",
  "bull-board": "ops/bull-board/main.ts",
  migrate: "db/main.ts",
  admin: "ops/admin/main.ts",
  reconcile: "ops/reconcile/main.ts",
  preflight: "ops/preflight/main.ts",
  "health-check": "ops/compose/health-check.ts",
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
];

/** Packages that stay in node_modules; `*` stands for any name. */
export const externalPackages = [
  // They load compiled code.
  ...["bigint-buffer", "bufferutil", "msgpackr-extract", "secp256k1", "sharp", "utf-8-validate"],
  // They serve files of their own folders.
  ...["@bull-board/*", "@fastify/swagger-ui"],
  // Node warns of a module that tr46 uses, except in node_modules.
  "tr46",
];

/** Gives CommonJS packages within a bundle the variables that Node gives them. */
const commonJsVariables = `\
import { createRequire as createRequireOfBundle } from "node:module";
const { dirname: __dirname, filename: __filename } = import.meta;
const require = createRequireOfBundle(import.meta.url);`;

export type Builder = {
  /** Builds the current sources. Throws when they cannot be bundled; the build that was there before then stays. */
  build(): Promise<void>;
  close(): Promise<void>;
};

/** Opens a builder that writes every program of the service to a folder, as bundles of the sources with their packages. */
export async function openBuilder(outdir: string): Promise<Builder> {
  const esbuild = await context({
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
    sourcemap: true,
    sourcesContent: false,
    external: externalPackages,
    banner: { js: commonJsVariables },
    plugins: [evaluateConstants],
    write: false,
    logLevel: "warning",
  });
  return {
    async build() {
      const { outputFiles } = await esbuild.rebuild();
      await writeFiles(outdir, outputFiles);
    },
    close: () => esbuild.dispose(),
  };
}

const evaluateConstants: Plugin = {
  name: "constants",
  setup(build) {
    const paths = new Set(constantModules.map((path) => join(root, path)));
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (!paths.has(path)) return undefined;
      // A new address for each build, because Node evaluates a module only once per address.
      const values: object = await import(`${pathToFileURL(path)}?${randomUUID()}`);
      const lines = Object.entries(values).map(([name, value]) => `export const ${name} = ${toSource(value)};`);
      return { contents: lines.join("\n"), loader: "js" };
    });
  },
};

/** Returns the source text of a value that consists of objects, arrays, texts and Buffers. */
export function toSource(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Buffer.isBuffer(value)) return `Buffer.from("${value.toString("base64")}", "base64")`;
  if (Array.isArray(value)) return `[${value.map(toSource).join(",")}]`;
  if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    return `{${Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}:${toSource(member)}`)}}`;
  throw new Error(`a build cannot contain this value: ${value}`);
}

/** Replaces the files of a folder one by one, so that a program that starts meanwhile reads no half of a file. */
async function writeFiles(dir: string, files: readonly { path: string; contents: Uint8Array }[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const { path, contents } of files) {
    const unfinished = `${path}.${process.pid}`;
    await writeFile(unfinished, contents);
    await rename(unfinished, path);
  }
  const names = new Set(files.map(({ path }) => basename(path)));
  for (const name of await readdir(dir)) if (!names.has(name)) await rm(join(dir, name), { force: true });
}

if (import.meta.main) {
  const builder = await openBuilder(join(root, "dist"));
  try {
    await builder.build();
  } finally {
    await builder.close();
  }
}
