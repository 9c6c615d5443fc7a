/** Markup that is ready to be sent. Whatever else is put into a page is text. */
export type Html = { readonly markup: string; readonly [ours]: true };

const ours = Symbol("markup of ours");

/** Says of a text that it is markup: for what this room itself has made, never for what came from outside. */
export const asHtml = (markup: string): Html => ({ markup, [ours]: true });

type Part = Html | string | number | false | undefined | null | readonly Part[];

/** Markup with values put in: a text is escaped, in attributes too (quote them); false, null and undefined are nothing. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const markup = literals.map((literal, index) => (index === 0 ? "" : write(parts[index - 1])) + literal).join("");
  return asHtml(markup.replace(/\n\s+/g, "\n"));
}

const isHtml = (part: Part): part is Html => typeof part === "object" && part !== null && ours in part;

function write(part: Part): string {
  if (isHtml(part)) return part.markup;
  if (Array.isArray(part)) return part.map(write).join("");
  return typeof part === "string" || typeof part === "number" ? escapeText(String(part)) : "";
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapeText = (text: string): string => text.replace(/[&<>"']/g, (found) => entities[found] ?? "");

/** Data for the page's script: never run, and with nothing in it that could end its element. */
export function dataElement(id: string, data: object): Html {
  return asHtml(
    `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`,
  );
}
