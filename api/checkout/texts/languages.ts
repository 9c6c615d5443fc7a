import { ar } from "./ar.ts";
import { de } from "./de.ts";
import { en, type Texts } from "./en.ts";
import { es } from "./es.ts";
import { fr } from "./fr.ts";
import { it } from "./it.ts";
import { ja } from "./ja.ts";
import { ptBr } from "./pt-br.ts";
import { tr } from "./tr.ts";
import { zh } from "./zh.ts";

export type Language = { tag: string; dir: "ltr" | "rtl"; texts: Texts };

/** The languages of the pages. The first is the fallback. */
export const languages: readonly [Language, ...Language[]] = [
  { tag: "en", dir: "ltr", texts: en },
  { tag: "de", dir: "ltr", texts: de },
  { tag: "es", dir: "ltr", texts: es },
  { tag: "fr", dir: "ltr", texts: fr },
  { tag: "it", dir: "ltr", texts: it },
  { tag: "pt-BR", dir: "ltr", texts: ptBr },
  { tag: "tr", dir: "ltr", texts: tr },
  { tag: "ja", dir: "ltr", texts: ja },
  { tag: "zh", dir: "ltr", texts: zh },
  { tag: "ar", dir: "rtl", texts: ar },
];

/**
 * Returns the language of a page: the requested one, else the first supported one of `Accept-Language`, else English.
 * Malformed input counts as no preference.
 */
export function pickLanguage(requested: string | undefined, accepted: string | undefined): Language {
  const wanted = [requested ?? "", ...readAccepted(accepted ?? "")];
  for (const tag of wanted) {
    const found = findLanguage(tag);
    if (found) return found;
  }
  return languages[0];
}

/**
 * Returns the language with this tag, else the one with the same primary subtag: `pt-PT` gets `pt-BR`, `zh-TW` gets
 * `zh`.
 */
function findLanguage(tag: string): Language | undefined {
  const wanted = tag.toLowerCase();
  const primary = wanted.split("-", 1)[0];
  return (
    languages.find((language) => language.tag.toLowerCase() === wanted) ??
    languages.find((language) => language.tag.toLowerCase().split("-", 1)[0] === primary)
  );
}

/** Returns the tags of the header by descending quality. */
function readAccepted(header: string): string[] {
  return header
    .slice(0, 1_000)
    .split(",")
    .map((part) => {
      const [tag = "", ...parameters] = part.split(";").map((text) => text.trim());
      const quality = Number(parameters.find((text) => text.startsWith("q="))?.slice(2) ?? 1);
      return { tag, quality: Number.isNaN(quality) ? 0 : quality };
    })
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag);
}

/** Returns a text with its placeholders filled. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(values[name] ?? placeholder));
}
