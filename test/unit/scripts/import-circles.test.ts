import { expect, test } from "vitest";
import { findCircles } from "../../../scripts/import-circles.ts";

const sourcesOf = (texts: Record<string, string>) => Object.entries(texts).map(([path, text]) => ({ path, text }));

test("files that import each other are found, also by types only and over several files", () => {
  const sources = sourcesOf({
    "a/one.ts": 'import { two } from "./two.ts";',
    "a/two.ts": 'import {\n  type Three,\n} from "../b/three.ts";',
    "b/three.ts": 'import type { One } from "../a/one.ts";\nimport { four } from "./four.ts";',
    "b/four.ts": 'import { z } from "zod";',
    "a/main.ts": 'import { one } from "./one.ts";',
  });
  expect(findCircles(sources)).toEqual(["a/one.ts", "a/two.ts", "b/three.ts"]);
});

test("a file that hands a name on imports it", () => {
  const sources = sourcesOf({
    "a/one.ts": 'export { two } from "./two.ts";',
    "a/two.ts": 'export type { One } from "./one.ts";',
  });
  expect(findCircles(sources)).toEqual(["a/one.ts", "a/two.ts"]);
});

test("imports in one direction are no circle", () => {
  const sources = sourcesOf({
    "a/one.ts": 'import { two } from "./two.ts";\nimport { three } from "./three.ts";',
    "a/two.ts": 'import { three } from "./three.ts";',
    "a/three.ts": "export const three = 3;",
  });
  expect(findCircles(sources)).toEqual([]);
});
