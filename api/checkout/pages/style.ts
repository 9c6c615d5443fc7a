import { createHash } from "node:crypto";
import { asHtml } from "../../../runtime/html.ts";
import { css } from "./style-sheet.ts";

/** The style sheet, inlined in every page, so that no page waits for a second request. */
export const styleElement = asHtml(`<style>${css}</style>`);

/** The hash by which the content security policy allows the style sheet. */
export const styleHash = `sha256-${createHash("sha256").update(css).digest("base64")}`;
