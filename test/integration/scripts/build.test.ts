import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import release from "../../../runtime/released-pages/release.json" with { type: "json" };
import { builtService } from "../../support/built-service.ts";

test("a built service serves the released scripts, and needs neither esbuild nor files of the sources", () => {
  const files = readdirSync(builtService).filter((name) => name.endsWith(".js"));
  const text = files.map((name) => readFileSync(join(builtService, name), "utf8")).join("\n");
  for (const { path, integrity } of Object.values(release.scripts)) {
    expect(text).toContain(`"${path.replace("/assets/", "")}"`);
    expect(text).toContain(`"${integrity}"`);
  }
  expect(text).not.toContain('"esbuild"');
  expect(text).not.toMatch(/new URL\([^)]*import\.meta\.url\)/);
});
