import { type Html, html } from "../../../runtime/html.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { assets } from "../release/script-bundles.ts";
import { type Language, languages } from "../texts/languages.ts";
import { dataElement } from "./data-element.ts";
import { legalLinks } from "./legal-links.ts";
import { styleElement } from "./style.ts";

export type Theme = "light" | "dark" | undefined;

type Layout = {
  language: Language;
  title: string;
  /** Path prefix of the service; empty when it has a host of its own. */
  base: string;
  theme?: Theme;
  /** Returns this page's address in another language. */
  inLanguage: (tag: string) => string;
  /** Linked in the footer. */
  legal?: ApiDeps["legal"];
  head?: Html | undefined;
  /** The page's script and its data, which the script reads with the texts as one object. */
  script?: { name: keyof typeof assets; data: object; texts: object } | undefined;
  body: Html;
};

/** Returns a whole document. It loads one script and the shop's logo, and nothing else. */
export function layout({ language, title, base, theme, inLanguage, legal, head, script, body }: Layout): Html {
  return html`<!doctype html>
    <html lang="${language.tag}" dir="${language.dir}"${theme ? html` data-theme="${theme}"` : ""}>
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title}</title>
    <link rel="icon" href="data:,">
    ${styleElement}
    ${script && html`<script type="module" src="${base}/assets/${assets[script.name].file}" integrity="${assets[script.name].integrity}"></script>`}
    ${head}
    </head>
    <body>
    <div class="page">
    ${body}
    <footer>${legal && legalLinks(language, legal)}${languageList(language, inLanguage)}</footer>
    </div>
    ${script && dataElement("data", script.data, script.texts)}
    </body>
    </html>`;
}

function languageList(present: Language, inLanguage: (tag: string) => string): Html {
  const items = languages.map(({ tag, dir, texts }) => {
    const current = tag === present.tag ? html` aria-current="true"` : "";
    return html`<li><a href="${inLanguage(tag)}" lang="${tag}" dir="${dir}" hreflang="${tag}"${current}>${texts.languageName}</a></li>`;
  });
  return html`<nav aria-label="${present.texts.language}"><details><summary>${present.texts.language}: ${present.texts.languageName}</summary><ul>${items}</ul></details></nav>`;
}

/** Returns a page with one message: unknown link, too many requests, server error. */
export function plainPage(
  page: Pick<Layout, "language" | "base" | "theme" | "inLanguage">,
  words: { title: string; text: string },
): Html {
  const body = html`<main class="card"><h1>${words.title}</h1><p>${words.text}</p></main>`;
  return layout({ ...page, title: words.title, body });
}
