import type { UnfinishedWork } from "../../db/queries/unfinished-work.ts";
import { html } from "../../runtime/html.ts";
import type { ConsolePage } from "./console-page.ts";
import { link, table } from "./values.ts";

/** The ages, minutes, from which work is listed. Ordinary work takes less than the first. */
export const ages = [2, 10, 60] as const;

/** Returns the page of work that should have ended by now. */
export function unfinishedPage(work: readonly UnfinishedWork[], age: (typeof ages)[number]): ConsolePage {
  const choices = ages.map((one) => {
    const current = one === age ? html` aria-current="true"` : "";
    return html`<a href="/console/unfinished?minutes=${one}"${current}>Older than ${one} minutes</a> `;
  });
  const body = html`<p class="choices">${choices}</p>
    ${table(
      `Older than ${age} minutes`,
      ["What", "Id", "Payment", "State", "Waits since", "Error or obstacle"],
      work.map((one) => [one.kind, one.id, link("payments", one.payment_id), one.state, one.since, one.error]),
    )}`;
  return { title: "Unfinished work", section: "/console/unfinished", body };
}
