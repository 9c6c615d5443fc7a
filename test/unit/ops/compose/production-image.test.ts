import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { startProbes } from "../../../../runtime/probes.ts";
import { allowedImports } from "../../../../scripts/check-imports.ts";

const root = new URL("../../../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");

/** Runs the program and returns its exit code and output. */
function run(program: string, args: string[], env: Record<string, string> = {}) {
  return new Promise<{ code: unknown; text: string }>((resolve) => {
    const options = { cwd: fileURLToPath(root), env: { PATH: process.env["PATH"], ...env } };
    execFile(program, args, options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, text: stdout + stderr }),
    );
  });
}

test("the image contains every module, except the checks in scripts", () => {
  const letIn = read(".dockerignore").match(/(?<=^!).+$/gm);
  const modules = Object.keys(allowedImports).filter((module) => module !== "scripts");
  expect(letIn).toEqual(expect.arrayContaining(["package.json", "package-lock.json", ...modules]));
});

test("every command of the image starts a file that exists", () => {
  const files = [...read("ops/compose/run.sh").matchAll(/exec node \/app\/(\S+)/g)].map((match) => match[1] ?? "");
  expect(files).toHaveLength(4);
  // The entry points of all roles: without this test, a missing file fails only when the container starts.
  expect(files.filter((file) => !existsSync(new URL(file, root)))).toEqual([]);
});

test("the image rejects an unknown command and lists the available ones", async () => {
  const { code, text } = await run("sh", ["ops/compose/run.sh", "frobnicate"]);
  expect([code, text]).toEqual([64, expect.stringContaining("expected api, worker, bull-board or migrate")]);
});

test("the image's health check exits with 0 for a status of 200 and with 1 for anything else", async () => {
  const ready = async () => ({ ok: false, checks: { postgres: false } });
  const probes = await startProbes({ host: "127.0.0.1", port: 0, registry: new Registry(), ready });
  const ask = (path: string, port: number) =>
    run(process.execPath, ["ops/compose/health-check.ts", path], { METRICS_PORT: String(port) });
  expect((await ask("/livez", probes.port)).code).toBe(0);
  expect(await ask("/readyz", probes.port)).toEqual({ code: 1, text: expect.stringContaining('"postgres":false') });
  await probes.close();
  expect((await ask("/livez", probes.port)).code).toBe(1);
});

test("the operations page lists exactly the variables that the service reads", () => {
  const known = new Set(
    read("runtime/config.ts")
      .match(/^ {2}[A-Z][A-Z_]+(?=:)/gm)
      ?.map((name) => name.trim()),
  );
  const table = read("docs/operations.md").split("## Environment")[1]?.split("\n## ")[0] ?? "";
  const listed = new Set(
    [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = ""]) => cell.match(/[A-Z][A-Z_]+/g) ?? []),
  );
  expect(known.size).toBeGreaterThan(10);
  expect([...listed].toSorted()).toEqual([...known].toSorted());
});

test("compose sets only variables that the service reads and requires every secret without a default", () => {
  const compose = read("docker-compose.yml");
  const example = new Set(read("ops/compose/env.example").match(/[A-Z_]+(?==)/g));
  const required = [...compose.matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1] ?? "");
  expect([...new Set(required)].toSorted()).toEqual([...example].toSorted());
  for (const [, name, rest] of compose.matchAll(/\$\{([A-Z_]*PASSWORD)([^}]*)\}/g)) expect(rest, name).toMatch(/^:\?/);
});
