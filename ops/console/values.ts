import { type Html, html } from "../../runtime/html.ts";

/** A value of a page. Strings are escaped; a Date is written in UTC; null is a dash. */
export type Value = Html | string | number | bigint | boolean | Date | null | undefined;

/** Returns a value as markup. */
function showValue(value: Value): Html {
  if (value === null || value === undefined || value === "") return html`<span class="soft">–</span>`;
  if (value instanceof Date) return showTime(value);
  if (typeof value === "object") return value;
  return typeof value === "string" ? html`${value}` : html`<span class="number">${String(value)}</span>`;
}

function showTime(at: Date): Html {
  const text = at.toISOString();
  return html`<time datetime="${text}">${text.replace("T", " ").replace("Z", " UTC")}</time>`;
}

/**
 * Returns a table with a heading, or a sentence when it has no rows. A wide table scrolls by itself, also with the keyboard.
 * @param rows one array of cells for each row, in the order of `columns`
 */
export function table(title: string, columns: readonly string[], rows: readonly (readonly Value[])[]): Html {
  if (rows.length === 0) return html`<h2>${title}</h2><p class="soft">None.</p>`;
  return html`<h2>${title}</h2>
    <section class="scroll" aria-label="${title}" tabindex="0"><table>
    <caption>${title}</caption>
    <thead><tr>${columns.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${showValue(cell)}</td>`)}</tr>`)}</tbody>
    </table></section>`;
}

/** Returns names with their values. */
export function facts(pairs: Readonly<Record<string, Value>>): Html {
  return html`<dl>${Object.entries(pairs).map(([name, value]) => html`<div><dt>${name}</dt><dd>${showValue(value)}</dd></div>`)}</dl>`;
}

/** Returns a link to a page of the console; a dash without an id. Ids of paths are escaped, whatever they contain. */
export function link(kind: "payments" | "merchants", id: string | null): Html {
  return id === null ? showValue(null) : html`<a href="/console/${kind}/${encodeURIComponent(id)}">${id}</a>`;
}
