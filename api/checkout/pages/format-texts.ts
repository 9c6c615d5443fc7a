import type { Money } from "../../../payments/views.ts";
import { type Html, html } from "../../../runtime/html.ts";
import type { Language } from "../texts/languages.ts";

/** Isolates a name's text direction from the text around it, where no element can be used. */
export const isolate = (text: string): string => `\u2068${text}\u2069`;

/** A text's parts in turn: words, and the name of a placeholder. The texts of languages do not change, so each is split once. */
const split = new Map<string, string[]>();

function splitText(text: string): string[] {
  const found = split.get(text);
  if (found) return found;
  const parts = text.split(/\{(\w+)\}/);
  split.set(text, parts);
  return parts;
}

/**
 * Returns a text of a language with its placeholders filled. A string value is isolated in its own text direction; an Html value
 * follows the direction of the text.
 */
export function phrase(text: string, values: Record<string, string | Html>): Html {
  return html`${splitText(text).map((part, index) => {
    if (index % 2 === 0) return part;
    const value = values[part] ?? "";
    return typeof value === "string" ? html`<bdi>${value}</bdi>` : value;
  })}`;
}

/** Returns an amount in the notation of a language, without rounding. */
export function formatMoney({ unit, value, display }: Money, { tag }: Language): string {
  const { decimals } = display;
  const digits = value.toString().padStart(decimals + 1, "0");
  const cut = digits.length - decimals;
  const fraction = digits.slice(cut);
  // As text: an amount may have more digits than a number can hold.
  const decimal = `${digits.slice(0, cut)}.${fraction}` as Intl.StringNumericLiteral;
  if (unit.startsWith("iso4217/")) {
    // Intl has fewer decimals for some currencies than ISO 4217: it would round 1,234.56 forints to 1,235.
    const exact = /[1-9]/.test(fraction) ? { minimumFractionDigits: decimals, maximumFractionDigits: decimals } : {};
    return numberFormat(tag, { style: "currency", currency: display.assetSymbol, ...exact }).format(decimal);
  }
  const format = { minimumFractionDigits: Math.min(2, decimals), maximumFractionDigits: 20 };
  return `${numberFormat(tag, format).format(decimal)} ${display.assetSymbol}`;
}

const formats = new Map<string, Intl.NumberFormat>();

/** Returns a format. Each is made once, because that takes longer than its use. */
function numberFormat(tag: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = `${tag} ${options.currency} ${options.minimumFractionDigits}`;
  const format = formats.get(name) ?? new Intl.NumberFormat(tag, options);
  formats.set(name, format);
  return format;
}

/** Returns `30 days` in a language, with the right plural. */
export const formatDays = (days: number, { tag }: Language): string =>
  new Intl.NumberFormat(tag, { style: "unit", unit: "day", unitDisplay: "long" }).format(days);

/** Returns `4:07`: whole seconds, rounded down, so that the page never shows more time than is left. */
export function formatDuration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const [minutes, hours] = [Math.floor(seconds / 60) % 60, Math.floor(seconds / 3_600)];
  const two = (part: number): string => String(part).padStart(2, "0");
  const rest = `${hours > 0 ? two(minutes) : minutes}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}
