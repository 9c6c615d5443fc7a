import { type Html, html } from "../../runtime/html.ts";
import type { SignedIn } from "../operator-login/session-guard.ts";
import type { ActionForm } from "./action-forms.ts";
import type { ConsolePage } from "./console-page.ts";
import { makeFormToken } from "./csrf.ts";

/**
 * Returns the page that confirms an action.
 * @param hidden what the form sends in addition: the id of the request, and what the page shows of the subject
 * @param shown what the operator reads of the subject before they confirm
 */
export function confirmPage(
  operator: SignedIn,
  {
    form,
    path,
    subject,
    hidden,
    shown,
  }: {
    form: ActionForm;
    path: string;
    subject: string;
    hidden: Readonly<Record<string, string>>;
    shown: Html | undefined;
  },
): ConsolePage {
  const fields = { token: makeFormToken(operator.token), ...hidden };
  const body = html`<p>${form.effect}</p>
    <p>Subject: <strong>${subject}</strong></p>
    ${shown}
    <form action="${path}" method="post">
    ${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
    ${form.inputs}
    <button type="submit">${form.title}</button>
    </form>`;
  return { title: `${form.title}: ${subject}`, body };
}
