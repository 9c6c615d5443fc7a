import type { PaymentStatus } from "../../../payments/views.ts";
import { type Html, html } from "../../../runtime/html.ts";
import type { Texts } from "../texts/en.ts";

type State = PaymentStatus["state"];
/** The state changes of the buttons; the server allows the same ones. */
const transitions: readonly { from: State; to: Exclude<State, "requires_action">; text: keyof Texts }[] = [
  { from: "requires_action", to: "processing", text: "toProcessing" },
  { from: "requires_action", to: "expired", text: "toExpired" },
  { from: "requires_action", to: "cancelled", text: "toCancelled" },
  { from: "processing", to: "succeeded", text: "toSucceeded" },
  { from: "processing", to: "failed", text: "toFailed" },
  { from: "processing", to: "expired", text: "toExpired" },
];

/** Returns the panel that drives a test payment by hand. It is part of the page's flow, so that it covers nothing. */
export function testConsole(t: Texts, state: State): Html {
  const hiddenUnless = (shown: boolean) => (shown ? "" : html` hidden`);
  const buttons = transitions.map(
    ({ from, to, text }) =>
      html`<button type="button" data-from="${from}" data-to="${to}"${hiddenUnless(from === state)}>${t[text]}</button>`,
  );
  // Acts as a wallet does: the payment is signed, confirmed and verified like a live one.
  const pay = html`<button type="button" class="main" data-from="requires_action"${hiddenUnless(state === "requires_action")}>${t.payTest}</button>`;
  const isOver = !transitions.some(({ from }) => from === state);
  return html`<aside aria-label="${t.consoleTitle}"><details id="console" class="card script"><summary>${t.consoleTitle}</summary>
    <p id="console-text"${hiddenUnless(!isOver)}>${t.consoleText}</p>
    <p id="console-none"${hiddenUnless(isOver)}>${t.consoleNone}</p>
    <div class="stack">${pay}${buttons}</div>
    <div role="alert"><p id="console-failed" class="bad" hidden>${t.consoleFailed}</p><p id="console-cannot" class="bad" hidden>${t.testCannot}</p>
    <p id="console-asks" hidden>${t.testAsks}</p></div>
    <a id="console-data" class="button main wide" hidden>${t.giveData}</a></details></aside>`;
}
