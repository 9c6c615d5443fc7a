import { ar } from "./texts/ar.ts";
import { de } from "./texts/de.ts";
import { en, type Texts } from "./texts/en.ts";
import { es } from "./texts/es.ts";
import { fr } from "./texts/fr.ts";
import { it } from "./texts/it.ts";
import { ja } from "./texts/ja.ts";
import { ptBr } from "./texts/pt-br.ts";
import { tr } from "./texts/tr.ts";
import { zh } from "./texts/zh.ts";

export type Language = { tag: string; dir: "ltr" | "rtl"; texts: Texts };

/** What the pages can be read in. The first is for everybody else. */
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
 * The language of a page: the one its reader asked for by name, else the first of `Accept-Language` that we have, else
 * English. Whatever browsers send, something comes out.
 */
export function pickLanguage(asked: string | undefined, accepted: string | undefined): Language {
  const wanted = [asked ?? "", ...readAccepted(accepted ?? "")];
  for (const tag of wanted) {
    const found = findLanguage(tag);
    if (found) return found;
  }
  return languages[0];
}

/** `pt` and `pt-PT` get what we have of Portuguese; `zh-TW` what we have of Chinese. */
function findLanguage(tag: string): Language | undefined {
  const asked = tag.toLowerCase();
  const primary = asked.split("-", 1)[0];
  return (
    languages.find((language) => language.tag.toLowerCase() === asked) ??
    languages.find((language) => language.tag.toLowerCase().split("-", 1)[0] === primary)
  );
}

/** Tags of the header, the most wanted first. */
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

/** A text with its places filled. */
export function fill(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(values[name] ?? place));
}
