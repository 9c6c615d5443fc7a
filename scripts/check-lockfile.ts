import { isDeepStrictEqual } from "node:util";
import manifest from "../package.json" with { type: "json" };
import lockfile from "../package-lock.json" with { type: "json" };

// `npm ci` refuses a lockfile that does not match package.json, but only during installation; this check fails earlier.
const locked: Record<string, unknown> = lockfile.packages[""];
const wanted: Record<string, unknown> = manifest;
const members = ["name", "version", "dependencies", "devDependencies", "optionalDependencies", "engines"];
const different = members.filter((member) => !isDeepStrictEqual(locked[member], wanted[member]));
for (const member of different) console.error(`package-lock.json: ${member} differs from package.json`);
if (different.length > 0) process.exitCode = 1;
else console.log("lockfile: matches package.json");
