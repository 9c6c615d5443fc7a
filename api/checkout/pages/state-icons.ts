import { type Html, html } from "../../../runtime/html.ts";

const mark = (kind: string, path: Html): Html =>
  html`<svg class="mark ${kind}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${path}</svg>`;

const circle = html`<circle cx="12" cy="12" r="10"/>`;
const cross = html`${circle}<path d="m8.5 8.5 7 7m0-7-7 7"/>`;

/** Icons beside the text of a state. They are decorative and hidden from screen readers. */
export const waitMark = mark("soft wait", html`<path d="M12 2a10 10 0 1 0 10 10"/>`);
const ends = {
  succeeded: mark("good", html`${circle}<path d="m7.5 12.5 3 3 6-6.5"/>`),
  failed: mark("bad", cross),
  expired: mark("soft", html`${circle}<path d="M12 6.5V12l3.5 2"/>`),
  cancelled: mark("soft", cross),
};

/** Returns the icon of a final state. */
export const endMark = (state: keyof typeof ends): Html => ends[state];
