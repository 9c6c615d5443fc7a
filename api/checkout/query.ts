import type { Language } from "./languages.ts";
import type { Theme } from "./layout.ts";

/** What stands behind the question mark of a page's address. */
export type Query = Record<string, string | string[] | undefined>;

/** How a buyer wants a page, and to which app he goes back: what stays the same from page to page. */
export type Wishes = {
  language: Language;
  theme: Theme;
  /** Where an app wants its buyer back: an app that the operator allows, never the web. */
  appUrl: string | undefined;
};

/** The first of a name that is given more than once. */
export const one = (given: Query[string]): string | undefined => (typeof given === "string" ? given : given?.[0]);

export function readTheme(query: Query): Theme {
  const wanted = one(query.theme);
  return wanted === "light" || wanted === "dark" ? wanted : undefined;
}

/**
 * Where an app that has opened the page in its web view wants its buyer back: an app that the operator allows, by scheme,
 * host and path alone. A query or a fragment could ask the app for anything, so both are dropped. It becomes a link, and is
 * never followed by itself.
 */
export function readAppUrl(query: Query, schemes: ReadonlySet<string>): string | undefined {
  const url = one(query.returnUrl) ?? "";
  if (url.length > 1_024) return undefined;
  const [, scheme = "", place] =
    /^([a-z][a-z0-9+.-]*):\/\/([a-z0-9.-]*(?:\/[a-z0-9._~%/-]*)?)(?:[?#]|$)/i.exec(url) ?? [];
  return schemes.has(scheme.toLowerCase()) ? `${scheme.toLowerCase()}://${place}` : undefined;
}

/** The wishes as they stand in an address of ours. */
export function writeWishes({ language, theme, appUrl }: Wishes): Record<string, string> {
  return { lang: language.tag, ...(theme ? { theme } : {}), ...(appUrl ? { returnUrl: appUrl } : {}) };
}

/** The same address in another language; whatever else stands in it stays. */
export function withLanguage(query: Query, tag: string): string {
  const given = Object.entries(query).map(([name, value]): [string, string] => [name, one(value) ?? ""]);
  return `?${new URLSearchParams([...given.filter(([name]) => name !== "lang"), ["lang", tag]])}`;
}
