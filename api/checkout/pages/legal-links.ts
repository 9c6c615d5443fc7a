import { type Html, html } from "../../../runtime/html.ts";
import type { ApiDeps } from "../../api-deps.ts";
import type { Language } from "../texts/languages.ts";

/**
 * Returns links to the operator's terms and privacy policy, as far as they are set; undefined when neither is. The links
 * open a new window: the form keeps what the buyer has typed, and a wallet's web view opens them in the system's browser.
 */
export function legalLinks({ texts }: Language, { termsUrl, privacyUrl }: ApiDeps["legal"]): Html | undefined {
  const links = [
    { url: termsUrl, text: texts.terms },
    { url: privacyUrl, text: texts.privacy },
  ].filter(({ url }) => url !== undefined);
  if (links.length === 0) return undefined;
  return html`<ul class="links">${links.map(
    ({ url, text }) =>
      html`<li><a class="plain" href="${url}" target="_blank" rel="noreferrer noopener">${text}</a></li>`,
  )}</ul>`;
}
