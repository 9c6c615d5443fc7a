import type { Theme } from "../pages/page-layout.ts";
import type { Language } from "../texts/languages.ts";

/** The query of a page's address. */
export type Query = Record<string, string | string[] | undefined>;

/** The buyer's preferences that go from page to page: language, theme and the app to return to. */
export type PagePreferences = {
  language: Language;
  theme: Theme;
  /** Address of an allowed app that the buyer returns to; never a web address. */
  appUrl: string | undefined;
};

/** Returns the first value of a query parameter. */
export const firstOf = (given: Query[string]): string | undefined => (typeof given === "string" ? given : given?.[0]);

export function readTheme(query: Query): Theme {
  const wanted = firstOf(query["theme"]);
  return wanted === "light" || wanted === "dark" ? wanted : undefined;
}

/**
 * Returns the address of the app that opened the page in its web view, if the operator allows its scheme. Keeps scheme,
 * host and path only, because a query or a fragment could make the app do anything. The page shows it as a link and never
 * follows it by itself.
 */
export function readAppUrl(query: Query, schemes: ReadonlySet<string>): string | undefined {
  const url = firstOf(query["returnUrl"]) ?? "";
  if (url.length > 1_024) return undefined;
  const [, scheme = "", hostAndPath] =
    /^([a-z][a-z0-9+.-]*):\/\/([a-z0-9.-]*(?:\/[a-z0-9._~%/-]*)?)(?:[?#]|$)/i.exec(url) ?? [];
  return schemes.has(scheme.toLowerCase()) ? `${scheme.toLowerCase()}://${hostAndPath}` : undefined;
}

/** Returns the preferences as query parameters. */
export function writePreferences({ language, theme, appUrl }: PagePreferences): Record<string, string> {
  return { lang: language.tag, ...(theme ? { theme } : {}), ...(appUrl ? { returnUrl: appUrl } : {}) };
}

/** Returns the query with another language; every other parameter stays. */
export function withLanguage(query: Query, tag: string): string {
  const given = Object.entries(query).map(([name, value]): [string, string] => [name, firstOf(value) ?? ""]);
  return `?${new URLSearchParams([...given.filter(([name]) => name !== "lang"), ["lang", tag]])}`;
}
