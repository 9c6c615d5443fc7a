import type { Found } from "../../payments/maintenance/search-payments.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { AmountFormatter } from "./amount-formatter.ts";
import type { ConsolePage } from "./console-page.ts";
import { showMerchants, showPayments } from "./result-tables.ts";

/** Most results of a search. */
export const MOST_FOUND = 100;

/** Returns the first page: a search, and its results when there was one. */
export function searchPage(text: string, found: { amounts: AmountFormatter; results: Found } | undefined): ConsolePage {
  return {
    title: "Search",
    section: "/console",
    body: html`${searchForm(text)}${found && results(found.amounts, found.results)}`,
  };
}

/** Returns the page of a search that took longer than a statement may. */
export function slowSearchPage(text: string): ConsolePage {
  const body = html`${searchForm(text)}
    <p class="warning" role="alert">The search took too long and was stopped. Search for an id, a transaction hash or a payer, which have indexes.</p>`;
  return { title: "Search", section: "/console", body };
}

function searchForm(text: string): Html {
  return html`<form action="/console" method="get" role="search">
    <label>Id, reference, transaction hash, payer, or merchant
    <input id="q" name="q" type="search" value="${text}" autocomplete="off" spellcheck="false"></label>
    <button type="submit">Search</button>
    </form>`;
}

function results(amounts: AmountFormatter, { payments, merchants }: Found): Html {
  if (payments.length + merchants.length === 0)
    return html`<p role="status">There is nothing with this id, reference, hash, payer or name.</p>`;
  return html`${payments.length > 0 && showPayments(payments.length === MOST_FOUND ? `The first ${MOST_FOUND} payments` : "Payments", amounts, payments)}
    ${merchants.length > 0 && showMerchants("Merchants", merchants)}`;
}
