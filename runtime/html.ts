/** Markup that is ready to be sent. Every other value is escaped as text. */
export type Html = { readonly markup: string; readonly [trusted]: true };

const trusted = Symbol("trusted markup");

/** Marks a text as markup. Only for text that this module has generated, never for input. */
export const asHtml = (markup: string): Html => ({ markup, [trusted]: true });

type Part = Html | string | number | false | undefined | null | readonly Part[];

/**
 * Returns markup with values inserted. Text is escaped, also for quoted attributes; false, null and undefined insert
 * nothing.
 */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = withoutIndents(literals);
  let markup = texts[0] ?? "";
  for (let index = 0; index < parts.length; index += 1) markup += write(parts[index]) + (texts[index + 1] ?? "");
  return asHtml(markup);
}

const shortened = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Returns a template's literals without indents. Each template exists once, and so does its result. */
function withoutIndents(literals: TemplateStringsArray): readonly string[] {
  const found = shortened.get(literals);
  if (found) return found;
  const short = literals.map((literal) => literal.replace(/\n\s+/g, "\n"));
  shortened.set(literals, short);
  return short;
}

const isHtml = (part: Part): part is Html => typeof part === "object" && part !== null && trusted in part;

function write(part: Part): string {
  if (typeof part === "string") return escapeText(part);
  if (isHtml(part)) return part.markup;
  if (Array.isArray(part)) return part.map(write).join("");
  return typeof part === "number" ? String(part) : "";
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapeText = (text: string): string =>
  /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (found) => entities[found] ?? "") : text;
