import type { ApiDeps } from "../deps.ts";
import { type Html, html } from "./html.ts";
import type { Language } from "./languages.ts";

/**
 * Links to the operator's terms and privacy policy, those that there are. In a window of their own: nobody loses what he
 * has typed, and a wallet's web view hands them to the system's browser.
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
