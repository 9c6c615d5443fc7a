import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../../..");

/** Runs knip with the project's configuration on these files. Returns its exit code and what it prints. */
async function runKnip(files: Record<string, string>): Promise<{ code: number; printed: string }> {
  const folder = await mkdtemp(join(tmpdir(), "exports-"));
  const config = await readFile(join(root, "knip.jsonc"), "utf8");
  for (const [path, text] of Object.entries({ "package.json": "{}", "knip.jsonc": config, ...files })) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  const knip = join(root, "node_modules/knip/bin/knip.js");
  const options = ["--no-progress", "--no-config-hints", "--directory", folder];
  return promisify(execFile)(process.execPath, [knip, ...options])
    .then(({ stdout }) => ({ code: 0, printed: stdout }))
    .catch(({ code, stdout }: { code: number; stdout: string }) => ({ code, printed: stdout }))
    .finally(() => rm(folder, { recursive: true }));
}

// One run for all tests of this file, because knip takes seconds to start.
const { code, printed } = await runKnip({
  "api/main.ts": 'import { serve } from "./server.ts";\nserve();\nexport const version = 1;\n',
  "api/server.ts":
    "export type Port = number;\nexport const port: Port = 1;\nexport function serve(): void {\n  void port;\n}\n",
  "api/old-server.ts": "",
  "db/migrations/0001_initial.ts": "export function up(): void {}\n",
});

test("the check fails on an exported value and an exported type that no other file imports", () => {
  expect(code).toBe(1);
  expect(printed).toMatch(/^port +api\/server\.ts:2/m);
  expect(printed).toMatch(/^Port +type +api\/server\.ts:1/m);
});

test("the check reports an export of a program, which no file imports", () => {
  expect(printed).toMatch(/^version +api\/main\.ts:3/m);
});

test("the check reports a file that no program and no test imports", () => {
  expect(printed).toMatch(/^api\/old-server\.ts/m);
});

test("the check allows an export that another file imports, and the function of a migration", () => {
  expect(printed).not.toMatch(/^(serve|up) /m);
});
