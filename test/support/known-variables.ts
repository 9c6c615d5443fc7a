import { readFileSync } from "node:fs";

const sources = ["config.ts", "tracing/tracing-variables.ts"];
const read = (source: string) => readFileSync(new URL(`../../runtime/${source}`, import.meta.url), "utf8");

/** The names of all environment variables that the processes read. */
export const knownVariables: ReadonlySet<string> = new Set(
  sources.flatMap((source) => read(source).match(/(?<=^ {2})[A-Z][A-Z_]+(?=:)/gm) ?? []),
);
