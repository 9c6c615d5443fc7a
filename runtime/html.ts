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
  const [first = "", ...others] = withoutIndents(literals);
  let markup = first;
  for (const [index, literal] of others.entries()) markup += write(parts[index]) + literal;
  return asHtml(markup);
}

const shortened = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Returns a template's literals without indents. Each template exists once, and so does its result. */
function withoutIndents(literals: TemplateStringsArray): readonly string[] {
  const short = shortened.get(literals) ?? literals.map((literal) => literal.replace(/\n\s+/g, "\n"));
  shortened.set(literals, short);
  return short;
}

const isHtml = (part: Part): part is Html => typeof part === "object" && part !== null && trusted in part;

function write(part: Part): string {
  if (isHtml(part)) return part.markup;
  if (Array.isArray(part)) return part.map(write).join("");
  return typeof part === "string" || typeof part === "number" ? escapeText(String(part)) : "";
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapeText = (text: string): string =>
  /[&<>"']/.test(text) ? text.replace(/[&<>"']/g, (found) => entities[found] ?? "") : text;
