import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";

/** The minified style sheet of the console. A build contains the result of this module, not the module (see scripts/build.ts). */
export const css = transformSync(readFileSync(new URL("style.css", import.meta.url), "utf8"), {
  loader: "css",
  minify: true,
}).code.trim();
