import type { CheckoutData, ScriptText } from "../pages/script-data.ts";
import { readData, request } from "./dom.ts";

/** The data of the payment that the server wrote into the page. */
export const data = readData<CheckoutData>();

/** Returns a text in the buyer's language with its placeholders filled. */
export function localize(name: ScriptText, values: Record<string, string | number> = {}): string {
  const all: Record<string, string | number> = { ...data.values, ...values };
  return data.texts[name].replace(/\{(\w+)\}/g, (placeholder, key: string) =>
    isolate(key, String(all[key] ?? placeholder)),
  );
}

/** Isolates a name in right-to-left text, so that it keeps its own direction. `ways` is text of the page itself. */
function isolate(key: string, value: string): string {
  return document.documentElement.dir === "rtl" && key !== "ways" ? `\u2068${value}\u2069` : value;
}

/** Requests one of this payment's routes; throws as `request` does. */
export const callApi = <T>(path: string, more?: { json?: object; signal?: AbortSignal }): Promise<T> =>
  request<T>(data.base + path, more);
