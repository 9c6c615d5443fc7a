import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
import manifest from "../../../package.json" with { type: "json" };

const Component = z.object({
  "bom-ref": z.string(),
  name: z.string(),
  version: z.string(),
  scope: z.enum(["required", "optional"]),
  purl: z.string().startsWith("pkg:npm/"),
  hashes: z.array(z.object({ alg: z.literal("SHA-512"), content: z.string().length(128) })).length(1),
});
const Sbom = z.object({
  bomFormat: z.literal("CycloneDX"),
  specVersion: z.literal("1.6"),
  components: z.array(Component),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

const cwd = fileURLToPath(new URL("../../../", import.meta.url));
const run = await promisify(execFile)("npm", ["run", "--silent", "sbom"], { cwd, maxBuffer: 64 * 1024 * 1024 });
const sbom = Sbom.parse(JSON.parse(run.stdout));
const purls = new Set(sbom.components.map(({ purl }) => purl));
const purlOf = (name: string, version: string) => `pkg:npm/${name.replace("@", "%40")}@${version}`;

test("npm run sbom lists every package that production loads with its version and hash", () => {
  for (const [name, version] of Object.entries(manifest.dependencies)) expect(purls).toContain(purlOf(name, version));
  expect(purls).toContain("pkg:npm/%40exodus/bigint-buffer@1.1.5-exodus.1");
});

test("npm run sbom lists no package that only development uses", () => {
  const names = new Set(sbom.components.map(({ name }) => name));
  for (const name of ["vitest", "knip", "lighthouse", "litesvm", "solc", "@biomejs/biome"])
    expect(names).not.toContain(name);
});

test("every component can be reached from the application, and every dependency is a component", () => {
  const dependsOn = new Map(sbom.dependencies.map(({ ref, dependsOn: refs }) => [ref, refs]));
  const reached = new Set<string>();
  const visit = (ref: string): void => {
    if (reached.has(ref)) return;
    reached.add(ref);
    for (const next of dependsOn.get(ref) ?? []) visit(next);
  };
  visit("root");
  const refs = sbom.components.map((component) => component["bom-ref"]);
  expect([...reached].toSorted()).toEqual([...refs, "root"].toSorted());
  const installed = new Set(readdirSync(`${cwd}/node_modules`));
  for (const component of sbom.components.filter(({ scope }) => scope === "required"))
    expect(installed).toContain(component["bom-ref"].split("/")[1]);
});
