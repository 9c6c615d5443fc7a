import type { Language } from "./languages.ts";
import type { Theme } from "./layout.ts";

/** What stands behind the question mark of a page's address. */
export type Query = Record<string, string | string[] | undefined>;

/** How a buyer wants a page, and to which app he goes back: what stays the same from page to page. */
export type Wishes = {
  language: Language;
  theme: Theme;
  /** Where an app wants its buyer back: a scheme of its own, never the web. */
  appUrl: string | undefined;
};

/** Schemes that an app can have for its own; whatever a browser gives a meaning of its own to is none. */
const notAnApp =
  /^(https?|javascript|data|blob|file|about|vbscript|intent|tel|sms|filesystem|view-source|ws|wss|ftp|mailto):/i;

/** The first of a name that is given more than once. */
export const one = (given: Query[string]): string | undefined => (typeof given === "string" ? given : given?.[0]);

export function readTheme(query: Query): Theme {
  const wanted = one(query.theme);
  return wanted === "light" || wanted === "dark" ? wanted : undefined;
}

/** The scheme of an app that has opened the page in its web view; it becomes a link, and is never followed by itself. */
export function readAppUrl(query: Query): string | undefined {
  const url = one(query.returnUrl);
  if (url === undefined || url.length > 1_024) return undefined;
  return /^[a-z][a-z0-9+.-]*:[!-~]*$/i.test(url) && !notAnApp.test(url) ? url : undefined;
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
