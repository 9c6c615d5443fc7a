import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);
const page = readFileSync(new URL("docs/security.md", root), "utf8");
const table = page.split("## Attacks, defences, tests")[1]?.split("\n## ")[0] ?? "";

test("every test that the threat model names for a defence exists", () => {
  const named = [...table.matchAll(/`((?:unit|integration|e2e|browser)\/[^`]+)`/g)].map((match) => match[1] ?? "");
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(new URL(`test/${path}`, root)))).toEqual([]);
});
