import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import { asHtml } from "./html.ts";

const css = transformSync(readFileSync(new URL("style.css", import.meta.url), "utf8"), {
  loader: "css",
  minify: true,
}).code.trim();

/** The one style sheet, in the page itself: nothing waits for a second request. */
export const styleElement = asHtml(`<style>${css}</style>`);

/** What the policy allows it by. */
export const styleHash = `sha256-${createHash("sha256").update(css).digest("base64")}`;
