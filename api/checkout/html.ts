/** Markup that is ready to be sent. Only `html` makes it, so that whatever else is put into a page is text. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

type Part = Html | string | number | false | undefined | null | readonly Part[];

/** Markup with values put in: a text is escaped, in attributes too (quote them); false, null and undefined are nothing. */
export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const markup = literals.map((literal, index) => (index === 0 ? "" : write(parts[index - 1])) + literal).join("");
  return new Html(markup.replace(/\n\s+/g, "\n"));
}

function write(part: Part): string {
  if (part instanceof Html) return part.markup;
  if (Array.isArray(part)) return part.map(write).join("");
  return typeof part === "string" || typeof part === "number" ? escapeText(String(part)) : "";
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

const escapeText = (text: string): string => text.replace(/[&<>"']/g, (found) => entities[found] ?? "");

/** Data for the page's script: never run, and with nothing in it that could end its element. */
export function dataElement(id: string, data: object): Html {
  return new Html(
    `<script type="application/json" id="${id}">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>`,
  );
}
