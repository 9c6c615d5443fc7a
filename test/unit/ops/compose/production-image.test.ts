import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { heapArgs } from "../../../../local/service-process.ts";
import { startProbes } from "../../../../runtime/probes.ts";
import { externalPackages, programs } from "../../../../scripts/build.ts";
import { allowedImports } from "../../../../scripts/check-imports.ts";
import { knownVariables } from "../../../support/known-variables.ts";

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

test("the context of the image's build contains every module and the build, and neither checks nor packages", () => {
  const letIn = read(".dockerignore").match(/(?<=^!).+$/gm);
  const left = ["scripts", "cli", "client"];
  const modules = Object.keys(allowedImports).filter((module) => !left.includes(module));
  expect(letIn).toEqual(
    expect.arrayContaining([
      "package.json",
      "package-lock.json",
      "scripts/build.ts",
      "scripts/copy-packages.ts",
      ...modules,
    ]),
  );
  for (const module of left) expect(letIn).not.toContain(module);
});

test("the commands of the image are the programs of a build", () => {
  const [, commands, args] =
    /^ {2}(.+)\)\s+exec node (.+) "\/app\/dist\/\$role\.js"/m.exec(read("ops/compose/run.sh")) ?? [];
  expect(args?.split(" ")).toEqual(heapArgs);
  expect((commands?.split(" | ") ?? []).toSorted()).toEqual(Object.keys(programs).toSorted());
  expect(read("Dockerfile")).toContain('"/app/ops/compose/health-check.sh"');
  expect(read("compose.yml")).toContain('"/app/ops/compose/health-check.sh"');
  // Without this test, a missing source fails only when the image is built.
  expect(Object.values(programs).filter((file) => !existsSync(new URL(file, root)))).toEqual([]);
});

test("the labels of the image name the version of package.json and the commit that it was built from", () => {
  const labels = Object.fromEntries(
    [...read("Dockerfile").matchAll(/image\.(\w+)="(.*?)"/g)].map(([, ...label]) => label),
  );
  const { name, version } = JSON.parse(read("package.json"));
  expect(labels).toEqual({ title: name, version, revision: `\${REVISION}` });
});

test("every package that a build loads from node_modules is installed in one version, at the top", () => {
  const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, unknown> };
  for (const name of externalPackages.filter((pattern) => !pattern.includes("*")))
    expect(Object.keys(packages).filter((path) => path.endsWith(`node_modules/${name}`))).toEqual([
      `node_modules/${name}`,
    ]);
});

test("the image rejects an unknown command and lists the available ones", async () => {
  const { code, text } = await run("sh", ["ops/compose/run.sh", "frobnicate"]);
  expect([code, text]).toEqual([
    64,
    expect.stringContaining("expected api, worker, signer, bull-board, migrate, admin, reconcile or preflight"),
  ]);
});

test("the image's health check exits with 0 for a status of 200 and with 1 for anything else", async () => {
  const ready = async () => ({ ok: false, checks: { postgres: false } });
  const probes = await startProbes({ host: "127.0.0.1", port: 0, registry: new Registry(), ready });
  const ask = (path: string, port: number) =>
    run("bash", ["ops/compose/health-check.sh", path], { METRICS_PORT: String(port) });
  expect((await ask("/livez", probes.port)).code).toBe(0);
  expect(await ask("/readyz", probes.port)).toEqual({ code: 1, text: expect.stringContaining('"postgres":false') });
  await probes.close();
  expect((await ask("/livez", probes.port)).code).toBe(1);
});

test("the operations page lists exactly the variables that the service reads", () => {
  const table = read("docs/operations.md").split("## Environment")[1]?.split("\n## ")[0] ?? "";
  const listed = new Set(
    [...table.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, cell = ""]) => cell.match(/[A-Z][A-Z_]+/g) ?? []),
  );
  expect(knownVariables.size).toBeGreaterThan(10);
  expect([...listed].toSorted()).toEqual([...knownVariables].toSorted());
});

test("the example of .env lists every variable that compose and its files read", () => {
  const files = `${read("compose.yml")}${read("compose.local.yml")}`;
  const example = new Set(read("ops/compose/env.example").match(/[A-Z_]+(?==)/g));
  const ofCompose = ["COMPOSE_FILE", "COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME"];
  const required = [...files.matchAll(/\$\{([A-Z_]+)/g)].map((match) => match[1] ?? "");
  expect([...new Set([...required, ...ofCompose])].toSorted()).toEqual([...example].toSorted());
  const trial = read("ops/compose/env.local").match(/[A-Z_]+(?==)/g) ?? [];
  expect(trial.filter((name) => !example.has(name))).toEqual([]);
});
