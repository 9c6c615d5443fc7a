import type { PaymentStatus } from "../../payments/views.ts";
import { type Html, html } from "./html.ts";
import type { Texts } from "./texts/en.ts";

type State = PaymentStatus["state"];
/** From where each button leads: the moves of a payment, as the server allows them too. */
const moves: readonly { from: State; to: Exclude<State, "requires_action">; text: keyof Texts }[] = [
  { from: "requires_action", to: "processing", text: "toProcessing" },
  { from: "requires_action", to: "expired", text: "toExpired" },
  { from: "requires_action", to: "cancelled", text: "toCancelled" },
  { from: "processing", to: "succeeded", text: "toSucceeded" },
  { from: "processing", to: "failed", text: "toFailed" },
  { from: "processing", to: "expired", text: "toExpired" },
];

/** Drives a payment of test mode by hand. In the page's flow, so that it covers nothing. */
export function testConsole(t: Texts, state: State): Html {
  const buttons = moves.map(
    ({ from, to, text }) =>
      html`<button type="button" data-from="${from}" data-to="${to}"${from === state ? "" : html` hidden`}>${t[text]}</button>`,
  );
  const isOver = !moves.some(({ from }) => from === state);
  return html`<aside aria-label="${t.consoleTitle}"><details id="console" class="card script"><summary>${t.consoleTitle}</summary>
    <p id="console-text"${isOver ? html` hidden` : ""}>${t.consoleText}</p>
    <p id="console-none"${isOver ? "" : html` hidden`}>${t.consoleNone}</p>
    <div class="stack">${buttons}</div>
    <p id="console-problem" class="bad" role="alert" hidden>${t.consoleFailed}</p></details></aside>`;
}
