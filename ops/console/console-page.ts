import { createHash } from "node:crypto";
import type { FastifyReply } from "fastify";
import { asHtml, type Html, html } from "../../runtime/html.ts";
import type { SignedIn } from "../operator-login/session-guard.ts";
import { css } from "./style-sheet.ts";

const styleElement = asHtml(`<style>${css}</style>`);

/** Allows the style sheet of the page and forms to this origin, and nothing else: no script, no frame. */
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(css).digest("base64")}'`,
  // The empty icon.
  "img-src data:",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The pages that every page links to. */
const sections = [
  { path: "/console", name: "Search" },
  { path: "/console/unfinished", name: "Unfinished" },
  { path: "/console/exceptions", name: "Exceptions" },
  { path: "/console/held", name: "Held" },
  { path: "/console/lanes", name: "Lanes" },
  { path: "/console/endpoints", name: "Endpoints" },
  { path: "/console/jobs", name: "Failed jobs" },
];

export type ConsolePage = {
  title: string;
  /** The path of the section that the page is. */
  section?: string;
  /** Loads the page again after so many seconds, while it waits for something. */
  refreshS?: number;
  body: Html;
};

/**
 * Sends a page of the console. Pages are never stored, because they show what one operator may see now.
 * @param operator undefined for the page of an error before the session is known: it has no links
 */
export function sendPage(
  reply: FastifyReply,
  operator: SignedIn | undefined,
  page: ConsolePage,
  status = 200,
): FastifyReply {
  return reply
    .code(status)
    .type("text/html; charset=utf-8")
    .headers({ "cache-control": "no-store", "content-security-policy": policy })
    .send(writePage(operator, page).markup);
}

function writePage(operator: SignedIn | undefined, { title, section, refreshS, body }: ConsolePage): Html {
  const links = sections.map(({ path, name }) => {
    const current = path === section ? html` aria-current="page"` : "";
    return html`<li><a href="${path}"${current}>${name}</a></li>`;
  });
  return html`<!doctype html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    ${refreshS !== undefined && html`<meta http-equiv="refresh" content="${refreshS}">`}
    <title>${title} · Operator console</title>
    <link rel="icon" href="data:,">
    ${styleElement}
    </head>
    <body>
    <header>
    ${operator && html`<nav aria-label="Console"><ul>${links}<li><a href="/">Queues</a></li><li><a href="/runbooks">Runbooks</a></li><li><a href="/logout">Log out ${operator.name} (${operator.role})</a></li></ul></nav>`}
    </header>
    <main>
    <h1>${title}</h1>
    ${body}
    </main>
    </body>
    </html>
    `;
}
