import { execFile } from "node:child_process";
import { join } from "node:path";
import type { programs } from "../../scripts/build.ts";
import { builtService } from "./built-service.ts";
import { testNodeArgs } from "./spawn-process.ts";

/** How a program ended, and what it wrote. */
export type ProgramResult = { code: number; stdout: string; stderr: string };

/** Runs a program of the built service, as an operator does, with these arguments and this environment, until it ends. */
export function runProgram(
  name: keyof typeof programs,
  args: readonly string[],
  env: Record<string, string>,
): Promise<ProgramResult> {
  const cache = process.env["NODE_COMPILE_CACHE"];
  const all = { ...(cache ? { NODE_COMPILE_CACHE: cache } : {}), ...env };
  const line = [...testNodeArgs, join(builtService, `${name}.js`), ...args];
  return new Promise((resolve) => {
    execFile(process.execPath, line, { env: all }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}
