import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { transformSync } from "esbuild";
import { asHtml } from "./html.ts";

const css = transformSync(readFileSync(new URL("style.css", import.meta.url), "utf8"), {
  loader: "css",
  minify: true,
}).code.trim();

/** The style sheet, inlined in every page, so that no page waits for a second request. */
export const styleElement = asHtml(`<style>${css}</style>`);

/** The hash by which the content security policy allows the style sheet. */
export const styleHash = `sha256-${createHash("sha256").update(css).digest("base64")}`;
