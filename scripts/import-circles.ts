import { posix } from "node:path";
import { listImports, type Source } from "./source-text.ts";

/**
 * Returns the files that import each other in a circle, and those on a way from one circle to another one. Imports of types count,
 * because a reader follows them too.
 */
export function findCircles(sources: readonly Source[]): string[] {
  const paths = new Set(sources.map(({ path }) => path));
  const targets = new Map(
    sources.map(({ path, text }) => {
      const files = listImports(text).map((target) => posix.join(posix.dirname(path), target));
      return [path, new Set(files.filter((file) => paths.has(file)))];
    }),
  );
  // A file that imports none of the remaining files, or that none of them imports, is in no circle.
  for (;;) {
    const imported = new Set([...targets.values()].flatMap((files) => [...files]));
    const outside = [...targets].flatMap(([path, files]) => (files.size === 0 || !imported.has(path) ? path : []));
    if (outside.length === 0) return [...targets.keys()].sort();
    for (const path of outside) targets.delete(path);
    for (const files of targets.values()) for (const path of outside) files.delete(path);
  }
}
