import { writeFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { watchSources } from "../../../local/watch-sources.ts";
import { waitFor } from "../../support/wait-for.ts";

const root = await mkdtemp(join(tmpdir(), "watch-sources-"));
afterAll(() => rm(root, { recursive: true, force: true }));
for (const folder of ["api/http", "test", ".local"]) await mkdir(join(root, folder), { recursive: true });

test("a changed source file is reported once, and a test, a log or a hidden folder is not", async () => {
  const changed: string[] = [];
  const stop = watchSources(root, (file) => changed.push(file));
  await writeFile(join(root, "test/a.test.ts"), "");
  await writeFile(join(root, ".local/env.json"), "");
  await writeFile(join(root, "api/api.log"), "");
  // Without a pause, which could be longer than the time in which changes count as one.
  for (const text of ["one", "two", "three"]) writeFileSync(join(root, "api/http/auth.ts"), text);
  await waitFor(() => changed.length > 0, { within: 20_000, what: "a change" });
  expect(changed).toEqual(["api/http/auth.ts"]);
  await writeFile(join(root, "api/http/auth.ts"), "four");
  await waitFor(() => changed.length > 1, { within: 20_000, what: "a second change" });
  stop();
  await writeFile(join(root, "api/http/auth.ts"), "five");
  expect(changed).toEqual(["api/http/auth.ts", "api/http/auth.ts"]);
});
