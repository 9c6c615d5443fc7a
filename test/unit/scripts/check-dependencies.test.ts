import { expect, test } from "vitest";
import lockfile from "../../../package-lock.json" with { type: "json" };
import {
  findAllowedScriptErrors,
  findDependencyErrors,
  type LockedPackage,
} from "../../../scripts/check-dependencies.ts";

const locked: Record<string, LockedPackage> = lockfile.packages;
const integrity = "sha512-xyz==";

test("the lockfile keeps the rules, and vulnerable packages are replaced", () => {
  expect(findDependencyErrors(locked)).toEqual([]);
  const names = Object.entries(locked).map(([path, { name }]) => name ?? path.replace(/^.*node_modules\//, ""));
  expect(names).not.toContain("bigint-buffer");
  expect(names).toContain("@exodus/bigint-buffer");
});

test.each<[string, LockedPackage, string]>([
  ["node_modules/new", { integrity, hasInstallScript: true }, "new has an install script without a rule"],
  ["node_modules/a/node_modules/bigint-buffer", { integrity, version: "1.1.5" }, "install @exodus/bigint-buffer"],
  ["node_modules/b", { resolved: "git+ssh://git@example.test/b.git#1" }, "is not from a registry"],
  ["node_modules/b", {}, "has no SHA-512 hash"],
  ["node_modules/b", { resolved: "../elsewhere", link: true }, "is not from a registry"],
])("a package %s that breaks a rule is reported", (path, entry, message) => {
  expect(findDependencyErrors({ ...locked, [path]: entry })).toEqual([expect.stringContaining(message)]);
});

test("a rule that no package needs any more is reported", () => {
  const { "node_modules/secp256k1": _gone, ...others } = locked;
  expect(findDependencyErrors(others)).toContain("secp256k1 has a rule and no install script");
});

test("npm is allowed to run the install scripts of the rules and no other", () => {
  expect(findAllowedScriptErrors(locked, { bufferutil: true })).toContainEqual(expect.stringContaining("bufferutil"));
  expect(findAllowedScriptErrors(locked, {})).toContainEqual(expect.stringContaining("secp256k1"));
});
