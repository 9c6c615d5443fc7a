import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../runbooks/", import.meta.url);

/** The texts of ops/runbooks by name. A build contains the result of this module, not the module (see scripts/build.ts). */
export const runbooks: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(folder)
    .filter((name) => name.endsWith(".md"))
    .map((name) => [name.slice(0, -".md".length), readFileSync(new URL(name, folder), "utf8")]),
);
