import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, printParseErrorCode, visit } from "jsonc-parser";
import { ConfigError } from "../config.ts";

/** A networks file before validation. `where` names it in errors. */
export type NetworksDocument = { where: string; document: unknown };

/** Begins a string that an operator has to replace. The files in ops/networks have several. */
const PLACEHOLDER = "FILL IN";
const syntax = { allowTrailingComma: true };

/**
 * Reads the networks files at a path: one file, or every .json and .jsonc file of a folder, by name. Files are JSON and may
 * have comments and trailing commas. Throws a ConfigError that names the line and never its content.
 */
export function readDocuments(path: string): NetworksDocument[] {
  const files = listFiles(path);
  if (files.length === 0) throw new ConfigError("the networks folder (NETWORKS_FILE) has no .json or .jsonc file");
  return files.map((file) => {
    const where = `the networks file ${basename(file)} (NETWORKS_FILE)`;
    return {
      where,
      document: parseText(
        read(where, () => readFileSync(file, "utf8")),
        where,
      ),
    };
  });
}

function listFiles(path: string): string[] {
  return read("the path in NETWORKS_FILE", () => {
    if (!statSync(path).isDirectory()) return [path];
    const names = readdirSync(path).filter((name) => /\.jsonc?$/.test(name));
    return names.sort().map((name) => join(path, name));
  });
}

function read<T>(what: string, attempt: () => T): T {
  try {
    return attempt();
  } catch (cause) {
    throw new ConfigError(`${what} cannot be read`, { cause });
  }
}

function parseText(text: string, where: string): unknown {
  const problems: string[] = [];
  const report = (line: number, problem: string) => problems.push(`\n  line ${line + 1}: ${problem}`);
  visit(
    text,
    {
      onError: (error, _offset, _length, line) => report(line, `is not JSON (${printParseErrorCode(error)})`),
      onLiteralValue(value, _offset, _length, line, _column, path) {
        if (typeof value === "string" && value.startsWith(PLACEHOLDER))
          report(line, `${path().join(".")}: is not filled in`);
      },
    },
    syntax,
  );
  if (problems.length > 0) throw new ConfigError(`${where} is invalid:${problems.join("")}`);
  return parse(text, [], syntax);
}
