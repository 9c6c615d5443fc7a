import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readManifest } from "../../support/run-example.ts";

const examples = readdirSync("examples", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
const root = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, Record<string, string>>;
const installed = { ...root["dependencies"], ...root["devDependencies"] };

test.each(examples)("%s starts with npm start and names the versions that its test runs with", (name) => {
  const { name: own, scripts, dependencies = {} } = readManifest(name);
  expect(own).toBe(name);
  expect(scripts.start).toBeTruthy();
  for (const [dependency, version] of Object.entries(dependencies)) {
    const expected = dependency === "payment-service-client" ? "file:../../client" : installed[dependency];
    expect({ dependency, version }).toEqual({ dependency, version: expected });
  }
});

test("the index of the examples names each one", () => {
  const index = readFileSync("examples/README.md", "utf8");
  for (const name of examples) expect(index).toContain(`[${name}](${name})`);
  for (const [, link = ""] of index.matchAll(/\]\(([^)#:]+)\)/g))
    expect(existsSync(`examples/${link}`), link).toBe(true);
});

test.each([
  ["express-shop/shop.js", 90],
  ["wallet/wallet.js", 100],
])("%s fits on a page: at most %i lines", (file, most) => {
  expect(readFileSync(`examples/${file}`, "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(most);
});
