import { type CollectedId, collectedSchema } from "../../../payments/buyer-data/collected-schema.ts";
import type { CheckoutView } from "../../../payments/lifecycle/checkout-view.ts";
import { type Html, html } from "../../../runtime/html.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { toPaymentLink } from "../../contract/responses.ts";
import { readPublicUrl } from "../../http/public-url.ts";
import { type PagePreferences, writePreferences } from "../routes/page-query.ts";
import { listCountries } from "../texts/countries.ts";
import type { Language } from "../texts/languages.ts";
import { formatDays, formatMoney, phrase } from "./format-texts.ts";
import { legalLinks } from "./legal-links.ts";
import { layout } from "./page-layout.ts";
import type { CollectData } from "./script-data.ts";
import { endMark } from "./state-icons.ts";

type CollectPage = PagePreferences & {
  /**
   * `open`: shows the form; `given`: the data is stored; `ended`: the payment takes no data, or there is no such
   * payment.
   */
  stage: "open" | "given" | "ended";
  view: CheckoutView | undefined;
  optionId: string;
  /** The name of the option's requester. */
  by: string;
  publicUrl: string;
  prefill: Partial<Record<CollectedId, string>>;
  /** True when the buyer came from the checkout page in the same window and returns to it. */
  back: boolean;
  /** Origins that may frame the page. */
  frames: readonly string[];
  legal: ApiDeps["legal"];
  /** How long the data is kept, days. */
  days: number;
  inLanguage: (tag: string) => string;
};

/** The schema requires one of two places; the form has controls for one and lets the buyer choose which it is. */
const places = [
  { place: "residence", country: "porCountry", address: "porAddress" },
  { place: "birth", country: "pobCountry", address: "pobAddress" },
] as const;

const { properties } = collectedSchema;

/** Returns the page that collects the buyer's data, in a wallet's web view or on the way from the checkout page. */
export function collectPage(page: CollectPage): Html {
  const { language, publicUrl, theme, view, stage, inLanguage } = page;
  const { texts: t } = language;
  const { base } = readPublicUrl(publicUrl);
  const data: Omit<CollectData, "texts"> = {
    stage,
    action: view ? `${base}/checkout/${view.paymentId}/collect/${page.by}` : "",
    optionId: page.optionId,
    frames: page.frames,
    backUrl: page.back && view ? checkoutUrl(page, view) : null,
  };
  const texts: CollectData["texts"] = {
    errorName: t.errorName,
    errorDob: t.errorDob,
    errorCountry: t.errorCountry,
    errorAddress: t.errorAddress,
    errorTos: t.errorTos,
    errorSave: t.errorSave,
    dataDone: t.dataDone,
    dataEnded: t.dataEnded,
    send: t.send,
    sendingData: t.sendingData,
  };
  return layout({
    language,
    base,
    theme,
    title: t.dataTitle,
    inLanguage,
    script: { name: "collect", data, texts },
    body: html`
      ${view?.mode === "test" && html`<header><p class="banner">${t.testBanner}</p></header>`}
      <main class="card">
      ${stage === "open" && view && form(page, view)}
      <section id="done"${stage === "given" ? "" : html` hidden`}>${endMark("succeeded")}<h1 id="done-title" tabindex="-1">${t.dataDoneTitle}</h1>
      <p>${t.dataDone}</p><button type="button" id="renotify" class="wide">${t.renotify}</button></section>
      <section id="ended"${stage === "ended" ? "" : html` hidden`}><h1 id="ended-title" tabindex="-1">${t.dataTitle}</h1><p>${t.dataEnded}</p></section>
      ${stage !== "open" && data.backUrl && html`<a class="button main wide" href="${data.backUrl}">${t.toPayment}</a>`}
      <p id="announcement" class="unseen" role="status" aria-live="polite" aria-atomic="true"></p>
      </main>`,
  });
}

/** Returns the address of the payment's checkout page with the buyer's preferences. */
function checkoutUrl(page: CollectPage, { paymentId }: CheckoutView): string {
  return `${toPaymentLink(page.publicUrl, paymentId)}&${new URLSearchParams(writePreferences(page))}`;
}

function form(page: CollectPage, view: CheckoutView): Html {
  const { language, days } = page;
  const { texts: t } = language;
  const values = {
    shop: view.merchant.name,
    amount: formatMoney(view.amount, language),
    days: formatDays(days, language),
  };
  return html`<form id="form" novalidate>
    <h1>${t.dataTitle}</h1>
    <p>${phrase(t.dataIntro, values)}</p><p class="soft">${phrase(t.dataKept, values)}</p>
    <noscript><p class="error">${t.dataScript}</p></noscript>
    <div id="summary" class="summary" role="alert" tabindex="-1" hidden><h2>${t.errorTitle}</h2><ul id="errors"></ul></div>
    ${[...new Set(Object.values(controlsOf(page)))]}
    <p id="save-error" class="error" role="alert" hidden></p>
    <button type="submit" id="send" class="main wide">${t.send}</button>
  </form>`;
}

/** Returns the control of each property, in the order of the form. A property without one fails the type check. */
function controlsOf({ language, prefill, legal }: CollectPage): Record<CollectedId, Html> {
  const { texts: t } = language;
  const chosen = prefill.pobCountry && !prefill.porCountry ? places[1] : places[0];
  const known = { country: prefill[chosen.country] ?? "", address: prefill[chosen.address] ?? "" };
  // Both places share the same controls.
  const country = html`<fieldset><legend>${t.place}</legend>${places.map(
    ({ place }) =>
      html`<label class="check"><input type="radio" name="place" value="${place}"${place === chosen.place ? html` checked` : ""}> <span>${t[place]}</span></label>`,
  )}</fieldset>
    ${field({ id: "country", label: t.country, control: countries(language, known.country) })}`;
  const address = field({
    id: "address",
    label: t.address,
    hint: t.addressHint,
    control: html`<textarea id="address" rows="2" autocomplete="street-address" maxlength="${properties.porAddress.maxLength}" required aria-describedby="address-hint address-error">${known.address}</textarea>`,
  });
  return {
    fullName: field({
      id: "fullName",
      label: t.fullName,
      hint: t.fullNameHint,
      control: html`<input id="fullName" autocomplete="name" maxlength="${properties.fullName.maxLength}" required aria-describedby="fullName-hint fullName-error" value="${prefill.fullName}">`,
    }),
    dob: dateOfBirth(language, prefill.dob ?? ""),
    porCountry: country,
    porAddress: address,
    pobCountry: country,
    pobAddress: address,
    tosConfirmed: html`<div id="tos-field" class="field"><p id="tos-error" class="error" hidden></p><label class="check"><input type="checkbox" id="tos" required aria-describedby="tos-error"> <span>${t.tos}</span></label>${legalLinks(language, legal)}</div>`,
  };
}

function dateOfBirth({ texts: t }: Language, known: string): Html {
  const [year = "", month = "", day = ""] = /^\d{4}-\d{2}-\d{2}$/.test(known) ? known.split("-") : [];
  return html`<fieldset id="dob-field" aria-describedby="dob-hint dob-error"><legend>${t.dob}</legend><p id="dob-hint" class="hint">${t.dobHint}</p><p id="dob-error" class="error" hidden></p>
    <div class="dates">${datePart("day", t.day, day, 2)}${datePart("month", t.month, month, 2)}${datePart("year", t.year, year, 4)}</div></fieldset>`;
}

function field({ id, label, hint, control }: { id: string; label: string; hint?: string; control: Html }): Html {
  return html`<div id="${id}-field" class="field"><label for="${id}">${label}</label>${hint && html`<p id="${id}-hint" class="hint">${hint}</p>`}<p id="${id}-error" class="error" hidden></p>${control}</div>`;
}

/** Returns one of the three number fields of the date of birth: a calendar is slow for distant years. */
function datePart(part: "day" | "month" | "year", label: string, value: string, length: number): Html {
  const id = part === "day" ? "dob" : part;
  return html`<div><label for="${id}">${label}</label><input id="${id}" inputmode="numeric" autocomplete="bday-${part}" maxlength="${length}" required value="${value}"></div>`;
}

function countries(language: Language, chosen: string): Html {
  const options = listCountries(language).map(
    ({ code, name }) => html`<option value="${code}"${code === chosen ? html` selected` : ""}>${name}</option>`,
  );
  return html`<select id="country" autocomplete="country" required aria-describedby="country-error"><option value="">${language.texts.chooseCountry}</option>${options}</select>`;
}
