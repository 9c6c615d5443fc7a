import type { CheckoutView } from "../../payments/checkout.ts";
import { type CollectedId, collectedSchema } from "../../payments/collected-schema.ts";
import { toPaymentLink } from "../answers.ts";
import type { ApiDeps } from "../deps.ts";
import { listCountries } from "./countries.ts";
import { type Html, html } from "./html.ts";
import type { Language } from "./languages.ts";
import { layout } from "./layout.ts";
import { legalLinks } from "./legal.ts";
import { endMark } from "./marks.ts";
import { type Wishes, writeWishes } from "./query.ts";
import type { CollectData } from "./script-data.ts";
import { phrase, writeDays, writeMoney } from "./words.ts";

export type CollectPage = Wishes & {
  /** `open`: asks; `given`: has been answered; `ended`: nothing is asked any more, or there is no such payment. */
  stage: "open" | "given" | "ended";
  view: CheckoutView | undefined;
  optionId: string;
  /** The name of the requester whose option it is. */
  by: string;
  publicUrl: string;
  prefill: Partial<Record<CollectedId, string>>;
  /** The buyer came from the checkout page in the same window, and goes back there. */
  back: boolean;
  /** Origins that may frame it. */
  frames: readonly string[];
  legal: ApiDeps["legal"];
  /** How long what is given is kept, days. */
  days: number;
  inLanguage: (tag: string) => string;
};

/** The schema asks for one of two places; the form asks for one, and which it is. */
const places = [
  { place: "residence", country: "porCountry", address: "porAddress" },
  { place: "birth", country: "pobCountry", address: "pobAddress" },
] as const;

const { properties } = collectedSchema;

/** The page that asks a buyer who he is, for a wallet's web view or for who pays on the checkout page. */
export function collectPage(page: CollectPage): Html {
  const { language, publicUrl, theme, view, stage, inLanguage } = page;
  const { texts: t } = language;
  const base = new URL(publicUrl).pathname.replace(/\/$/, "");
  const data: CollectData = {
    stage,
    action: view ? `${base}/checkout/${view.paymentId}/collect/${page.by}` : "",
    optionId: page.optionId,
    frames: page.frames,
    backUrl: page.back && view ? wayBack(page, view) : null,
    texts: {
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
    },
  };
  return layout({
    language,
    base,
    theme,
    title: t.dataTitle,
    inLanguage,
    script: { name: "collect", data },
    body: html`
      ${view?.mode === "test" && html`<header><p class="banner">${t.testBanner}</p></header>`}
      <main class="card">
      ${stage === "open" && view && form(page, view)}
      <section id="done"${stage === "given" ? "" : html` hidden`}>${endMark("succeeded")}<h1 id="done-title" tabindex="-1">${t.dataDoneTitle}</h1>
      <p>${t.dataDone}</p><button type="button" id="again" class="wide">${t.tellAgain}</button></section>
      <section id="ended"${stage === "ended" ? "" : html` hidden`}><h1 id="ended-title" tabindex="-1">${t.dataTitle}</h1><p>${t.dataEnded}</p></section>
      ${stage !== "open" && data.backUrl && html`<a class="button main wide" href="${data.backUrl}">${t.toPayment}</a>`}
      <p id="said" class="unseen" role="status" aria-live="polite" aria-atomic="true"></p>
      </main>`,
  });
}

/** The payment's page as the buyer has left it. */
function wayBack(page: CollectPage, { paymentId }: CheckoutView): string {
  return `${toPaymentLink(page.publicUrl, paymentId)}&${new URLSearchParams(writeWishes(page))}`;
}

function form(page: CollectPage, view: CheckoutView): Html {
  const { language, days } = page;
  const { texts: t } = language;
  const values = {
    shop: view.merchant.name,
    amount: writeMoney(view.amount, language),
    days: writeDays(days, language),
  };
  return html`<form id="form" novalidate>
    <h1>${t.dataTitle}</h1>
    <p>${phrase(t.dataIntro, values)}</p><p class="soft">${phrase(t.dataKept, values)}</p>
    <noscript><p class="error">${t.dataScript}</p></noscript>
    <div id="summary" class="summary" role="alert" tabindex="-1" hidden><h2>${t.errorTitle}</h2><ul id="faults"></ul></div>
    ${[...new Set(Object.values(controlsOf(page)))]}
    <p id="trouble" class="error" role="alert" hidden></p>
    <button type="submit" id="send" class="main wide">${t.send}</button>
  </form>`;
}

/** What asks for each property, in the order of the form: one that nothing asks for fails the type check. */
function controlsOf({ language, prefill, legal }: CollectPage): Record<CollectedId, Html> {
  const { texts: t } = language;
  const chosen = prefill.pobCountry && !prefill.porCountry ? places[1] : places[0];
  const whole = { country: prefill[chosen.country] ?? "", address: prefill[chosen.address] ?? "" };
  // Both places are asked for in the same controls.
  const country = html`<fieldset><legend>${t.place}</legend>${places.map(
    ({ place }) =>
      html`<label class="check"><input type="radio" name="place" value="${place}"${place === chosen.place ? html` checked` : ""}> <span>${t[place]}</span></label>`,
  )}</fieldset>
    ${field({ id: "country", label: t.country, control: countries(language, whole.country) })}`;
  const address = field({
    id: "address",
    label: t.address,
    hint: t.addressHint,
    control: html`<textarea id="address" rows="2" autocomplete="street-address" maxlength="${properties.porAddress.maxLength}" required aria-describedby="address-hint address-error">${whole.address}</textarea>`,
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

/** Three numbers: a calendar is a poor way to get to 1952. */
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
