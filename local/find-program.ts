import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the path of a program on the PATH or in one of the further folders, or undefined. */
export function findProgram(name: string, further: readonly string[] = []): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...further];
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

/** Returns the program that a variable names, or undefined when it is not set. Throws when it names no program. */
export function programFrom(variable: string): string | undefined {
  const file = process.env[variable];
  if (file === undefined || file === "") return undefined;
  if (!isProgram(file)) throw new Error(`${variable} does not name an executable program`);
  return file;
}

function isProgram(file: string): boolean {
  try {
    if (!existsSync(file)) return false;
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
