import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);
const page = readFileSync(new URL("docs/security.md", root), "utf8");
const table = page.split("## Attacks, defences, tests")[1]?.split("\n## ")[0] ?? "";

test("the threat model names a test for every attack, and each of them exists", () => {
  const attacks = table.split("\n").filter((row) => /^\| (?!---|attack |\*\*)/.test(row));
  expect(attacks.filter((row) => !/`(unit|integration|e2e|browser)\/[^`]+` \|$/.test(row))).toEqual([]);
  const named = [...table.matchAll(/`((?:unit|integration|e2e|browser)\/[^`]+)`/g)].map((match) => match[1] ?? "");
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((path) => !existsSync(new URL(`test/${path}`, root)))).toEqual([]);
});
