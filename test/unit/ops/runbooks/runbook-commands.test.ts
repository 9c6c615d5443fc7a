import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createProgram } from "../../../../ops/admin/program.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { readRunbooks } from "../../../runbooks/read-runbooks.ts";

const runbooks = readRunbooks();
const program = createProgram({ env: {}, write: () => undefined, writeError: () => undefined });

/** Returns what is wrong with the arguments of `npm run admin --`, or undefined. A command may be named without its arguments. */
function findError(line: string): string | undefined {
  let words = line.replaceAll(/<[^>]*>/g, "ID").split(" ");
  let command: Command = program;
  for (;;) {
    const next = command.commands.find((one) => one.name() === words[0]);
    if (!next) break;
    command = next;
    words = words.slice(1);
  }
  if (command === program || command.commands.length > 0) return `${line}: there is no such command`;
  const options = words.filter((word) => word.startsWith("--"));
  const unknown = options.filter((option) => !command.options.some(({ long }) => long === option));
  if (unknown.length > 0) return `${line}: unknown ${unknown.join(", ")}`;
  const first = words.findIndex((word) => word.startsWith("--"));
  const given = first === -1 ? words : words.slice(0, first);
  if (words.length === 0) return undefined;
  const wanted = command.registeredArguments.filter(({ required }) => required).length;
  if (given.length < wanted || given.length > command.registeredArguments.length)
    return `${line}: takes ${command.usage()}`;
  const missing = command.options.filter(({ mandatory, long }) => mandatory && !options.includes(long ?? ""));
  return missing.length === 0 ? undefined : `${line}: lacks ${missing.map(({ long }) => long).join(", ")}`;
}

test("every command in a runbook exists, with its arguments and options", () => {
  const commands = runbooks.flatMap(({ name, adminCommands }) => adminCommands.map((line) => ({ name, line })));
  expect(commands.length).toBeGreaterThan(30);
  expect(commands.flatMap(({ name, line }) => findError(line)?.replace(/^/, `${name}: `) ?? [])).toEqual([]);
});

test("every metric in a runbook exists", async () => {
  const registry = new Registry();
  createMetrics(registry, "worker");
  const known = new Set((await registry.getMetricsAsJSON()).map(({ name }) => name));
  const named = runbooks.flatMap(({ name, metrics }) => metrics.map((metric) => ({ name, metric })));
  expect(
    named.filter(({ metric }) => !known.has(metric) && !/^pay_(admin|board|worker|api|signer|operator)$/.test(metric)),
  ).toEqual([]);
});

test("every log line in a runbook is written by the service", () => {
  const root = fileURLToPath(new URL("../../../../", import.meta.url));
  const sources = ["api", "chains", "ops", "payments", "queues", "runtime", "signer", "transfers", "workers"]
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((file) => join(root, folder, file)),
    )
    .filter((file) => file.endsWith(".ts"))
    .map((file) => readFileSync(file, "utf8"))
    .join("\n");
  const named = runbooks.flatMap(({ name, text }) =>
    [...text.replaceAll(/\s+/g, " ").matchAll(/\blog(?: line| lines| has| says why)(?: with)? \(?`([^`]+)`/g)].map(
      ([, line = ""]) => ({ name, line }),
    ),
  );
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter(({ line }) => !sources.includes(line))).toEqual([]);
});
