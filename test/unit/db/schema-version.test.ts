import { expect, test } from "vitest";
import { compareVersions, describeRefusal, highestVersion, versionOf } from "../../../db/schema-version.ts";

test("the migrations of one release share the number at the start of their names", () => {
  expect(versionOf("0012_payer_index")).toBe(12);
  expect(highestVersion(["0001_initial", "0002_a", "0002_b"])).toBe(2);
  expect(highestVersion([])).toBe(0);
  expect(() => versionOf("initial")).toThrow("the migration initial has no number");
});

test("a release works with its own schema and with the next one", () => {
  expect([1, 2, 3, 4].map((database) => compareVersions(database, 2))).toEqual(["older", "current", "next", "newer"]);
});

test("a refusal says what to start", () => {
  expect(describeRefusal("older", 0, 2)).toBe(
    "the database has schema version 0, and this release works with 2 and 3: run `migrate` of this release",
  );
  expect(describeRefusal("newer", 4, 2)).toBe(
    "the database has schema version 4, and this release works with 2 and 3: start the release of version 3 or 4",
  );
  expect(describeRefusal("older", 2, 2)).toBe(
    "not every migration of schema version 2 has run: wait for `migrate` of this release, or run it",
  );
});
