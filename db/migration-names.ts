import { readdirSync } from "node:fs";

/**
 * The names of the files of db/migrations, in their order. A build contains the result of this module, not the module (see
 * scripts/build.ts).
 */
export const migrationNames: readonly string[] = readdirSync(new URL("./migrations/", import.meta.url))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replace(/\.ts$/, ""))
  .sort();
