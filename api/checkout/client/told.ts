import type { CheckoutData, ScriptText } from "../script-data.ts";
import { readData, request } from "./page.ts";

/** What the server has told of the payment when it wrote the page. */
export const data = readData<CheckoutData>();

/** A text in the buyer's language, its places filled. */
export function words(name: ScriptText, values: Record<string, string | number> = {}): string {
  const all: Record<string, string | number> = { ...data.values, ...values };
  return data.texts[name].replace(/\{(\w+)\}/g, (place, key: string) => isolate(key, String(all[key] ?? place)));
}

/** Names keep their own direction of writing among words from right to left; the ways to pay are words of ours. */
function isolate(key: string, value: string): string {
  return document.documentElement.dir === "rtl" && key !== "ways" ? `\u2068${value}\u2069` : value;
}

/** Asks one of this payment's routes; throws as `request` does. */
export const ask = <T>(path: string, more?: { json?: object; signal?: AbortSignal }): Promise<T> =>
  request<T>(data.base + path, more);
