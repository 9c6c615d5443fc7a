import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
import manifest from "../../../package.json" with { type: "json" };

const Component = z.object({
  name: z.string(),
  version: z.string(),
  purl: z.string().startsWith("pkg:npm/"),
  hashes: z.array(z.object({ alg: z.literal("SHA-512"), content: z.string().length(128) })).min(1),
});
const Sbom = z.object({
  bomFormat: z.literal("CycloneDX"),
  metadata: z.object({ component: z.object({ version: z.string() }) }),
  components: z.array(Component),
});

test("npm run sbom lists every package that production runs with its version and hash, and none of development", async () => {
  const cwd = fileURLToPath(new URL("../../../", import.meta.url));
  const run = promisify(execFile)("npm", ["run", "--silent", "sbom"], { cwd, maxBuffer: 64 * 1024 * 1024 });
  const sbom = Sbom.parse(JSON.parse((await run).stdout));
  const purls = sbom.components.map(({ purl }) => purl);
  for (const [name, version] of Object.entries(manifest.dependencies))
    expect(purls).toContain(`pkg:npm/${name.replace("@", "%40")}@${version}`);
  expect(purls).toContain("pkg:npm/%40exodus/bigint-buffer@1.1.5-exodus.1");
  const names = new Set(sbom.components.map(({ name }) => name));
  for (const name of ["vitest", "knip", "lighthouse", "solc"]) expect(names).not.toContain(name);
});
