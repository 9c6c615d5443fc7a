import { readFileSync } from "node:fs";
import { ConfigError } from "../runtime/config.ts";
import { errorCode } from "../runtime/redaction.ts";

/** Returns the content of a file that an argument of a command names. Throws ConfigError, which names the file. */
export function readArgument(file: string): string {
  if (file === "") throw new ConfigError("expected a file: see `signer --help`");
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ConfigError(`the file ${file} cannot be read (${errorCode(cause)})`, { cause });
  }
}

/** Returns the JSON of a file that an argument of a command names. Throws ConfigError, which names the file. */
export function readJsonArgument(file: string): unknown {
  const text = readArgument(file);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ConfigError(`the file ${file} is not JSON`, { cause });
  }
}
