import { isDeepStrictEqual } from "node:util";
import manifest from "../package.json" with { type: "json" };
import lockfile from "../package-lock.json" with { type: "json" };

// `npm ci` refuses a lockfile that is out of step, but only on the machine that installs; here it is told at once.
const locked: Record<string, unknown> = lockfile.packages[""];
const wanted: Record<string, unknown> = manifest;
const members = ["name", "version", "dependencies", "devDependencies", "optionalDependencies", "engines"];
const different = members.filter((member) => !isDeepStrictEqual(locked[member], wanted[member]));
for (const member of different) console.error(`package-lock.json: ${member} is not what package.json says`);
if (different.length > 0) process.exitCode = 1;
else console.log("lockfile: in step");
