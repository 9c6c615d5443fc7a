import type { Way } from "../../../payments/lifecycle/checkout-view.ts";
import { type Html, html } from "../../../runtime/html.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { toLogoUrl, toPaymentLink } from "../../contract/responses.ts";
import { readPublicUrl } from "../../http/public-url.ts";
import { type PagePreferences, writePreferences } from "../routes/page-query.ts";
import type { Texts } from "../texts/en.ts";
import { fill, type Language } from "../texts/languages.ts";
import { isolate, phrase } from "./format-texts.ts";
import { layout } from "./page-layout.ts";
import { qrCode } from "./qr-code.ts";
import { type CheckoutData, type NetworkAddition, scriptTexts } from "./script-data.ts";
import type { ShownPayment } from "./shown-payment.ts";
import { endMark, waitMark } from "./state-icons.ts";
import { toStatusPayload } from "./status-payload.ts";
import { testConsole } from "./test-console.ts";
import { listWalletApps } from "./wallet-apps.ts";

/** Time in `processing` after which the page says that the buyer may close it, milliseconds. */
const LONG_PROCESSING_MS = 30_000;

export type CheckoutPage = PagePreferences & {
  view: ShownPayment;
  ways: readonly Way[];
  publicUrl: string;
  /** True when a buyer without JavaScript has chosen a page that reloads itself. */
  refresh: boolean;
  legal: ApiDeps["legal"];
};

type PageValues = { t: Texts; shop: string; amount: string; ways: string };
type Page = CheckoutPage & {
  words: PageValues;
  fillHtml: (text: string) => Html;
  link: string;
  base: string;
  /** The page's own path, with the buyer's preferences. */
  path: string;
};

/** Returns the checkout page of a payment in its present state. The page's script switches it to later states. */
export function checkoutPage(args: CheckoutPage): Html {
  const { view, language, publicUrl, ways } = args;
  const values = { shop: view.shop, amount: view.amount, ways: listWords(ways, language) };
  const words = { t: language.texts, ...values };
  const { base } = readPublicUrl(publicUrl);
  const link = toPaymentLink(publicUrl, view.paymentId);
  const { lang: _, ...preferences } = writePreferences(args);
  const ownPath = `${base}/?${new URLSearchParams({ pid: view.paymentId, ...preferences })}`;
  const placeholders = { ...values, ways: html`${values.ways}` };
  const page: Page = {
    ...args,
    words,
    fillHtml: (text) => phrase(text, placeholders),
    link,
    base,
    path: `${ownPath}&lang=${language.tag}`,
  };
  return layout({
    language,
    base,
    theme: args.theme,
    title: `${titles(words)[sectionOf(args)]} – ${words.shop}`,
    inLanguage: (tag) => `${ownPath}&lang=${tag}`,
    legal: args.legal,
    head: isRefreshing(page) ? html`<noscript><meta http-equiv="refresh" content="10"></noscript>` : undefined,
    script: { name: "checkout", data: toScriptData(page), texts: listScriptTexts(language) },
    body: html`
      ${view.mode === "test" && html`<header><p class="banner">${words.t.testBanner}</p></header>`}
      <main class="card">
      ${shopLine(page)}
      ${paySection(page)}
      ${unpayableSection(page)}
      ${processingSection(page)}
      ${endSection(page, "succeeded", words.t.succeededTitle, words.t.succeededText)}
      ${endSection(page, "failed", words.t.failedTitle, words.t.failedText)}
      ${endSection(page, "expired", words.t.expiredTitle, words.t.expiredText)}
      ${endSection(page, "cancelled", words.t.cancelledTitle, words.t.cancelledText)}
      ${returnLinks(page)}
      ${facts(page)}
      <p id="announcement" class="unseen" role="status" aria-live="polite" aria-atomic="true"></p>
      </main>
      ${view.mode === "test" && testConsole(words.t, view.state)}`,
  });
}

/** Returns `USDC on Base or USDT on Ethereum` in the buyer's language. */
function listWords(ways: readonly Way[], { tag, texts }: Language): string {
  const items = ways.map(({ symbol, network }) =>
    fill(texts.optionOn, { amount: isolate(symbol), network: isolate(network) }),
  );
  const format = listFormats.get(tag) ?? new Intl.ListFormat(tag, { type: "disjunction" });
  listFormats.set(tag, format);
  return format.format([...new Set(items)]);
}

/** By language, because to make a format takes longer than to use it. */
const listFormats = new Map<string, Intl.ListFormat>();

/** Returns the visible section: the state's, or `unpayable` for an open payment that no asset can pay. */
const sectionOf = ({ view, ways }: Pick<CheckoutPage, "view" | "ways">) =>
  view.state === "requires_action" && ways.length === 0 ? "unpayable" : view.state;

const titles = ({ t, amount }: PageValues) => ({
  unpayable: t.unpayableTitle,
  requires_action: fill(t.payTitle, { amount }),
  processing: t.processingTitle,
  succeeded: t.succeededTitle,
  failed: t.failedTitle,
  expired: t.expiredTitle,
  cancelled: t.cancelledTitle,
});

const isRefreshing = ({ refresh, view }: Page): boolean => refresh && !view.isFinal;
const hiddenUnless = (shown: boolean): Html => (shown ? html`` : html` hidden`);

function shopLine(page: Page): Html {
  const { view, publicUrl, words } = page;
  const { logoId } = view;
  const logo =
    logoId && html`<img src="${new URL(toLogoUrl(publicUrl, logoId)).pathname}" alt="" width="48" height="48">`;
  const isPaySection = sectionOf(page) === "requires_action";
  return html`<div class="shop">${logo}<p><bdi>${words.shop}</bdi></p><p id="sum"${hiddenUnless(!isPaySection)}><bdi>${words.amount}</bdi></p></div>`;
}

function paySection(page: Page): Html {
  const { view, words, fillHtml, link } = page;
  const { t } = words;
  return html`<section id="requires_action" aria-labelledby="pay-title"${hiddenUnless(sectionOf(page) === "requires_action")}>
    <h1 id="pay-title" tabindex="-1">${fillHtml(t.payTo)}</h1>
    <p class="offer">${fillHtml(t.payableWith)}</p>
    <p class="offer">${phrase(t.timeLeft, { time: html`<span id="time" class="time" role="timer" aria-live="off">${view.time}</span>` })}</p>
    ${withoutScript(page)}
    <div class="ways">
    <div id="here" class="here">${openInWallets(page)}
    <div id="in-page" class="script"><h2>${t.walletHere}</h2>
    <div id="pay"><p id="searching" class="soft step">${t.searching}</p><ul id="wallets" class="stack wallets" hidden></ul>
    <p id="step" class="step" hidden></p><p id="problem" class="bad strong" role="alert" hidden></p><div id="choices" class="stack" hidden></div></div></div></div>
    <div class="code offer"><h2>${byDevice(t.walletApp, t.otherDevice)}</h2><p>${byDevice(t.scan, t.scanOther)}</p>
    ${qrCode(link, t.qrName)}</div>
    <div class="copying offer"><label for="link">${t.linkLabel}</label><p id="link-hint" class="hint">${t.linkHint}</p>
    <div class="link"><textarea id="link" dir="ltr" rows="2" readonly spellcheck="false" aria-describedby="link-hint">${link}</textarea><button type="button" id="copy" class="script">${t.copy}</button></div></div>
    <details class="offer"><summary>${t.newHere}</summary><p>${fillHtml(t.newHereText)}</p></details>
    </div>
  </section>`;
}

/** Returns both texts; the style sheet shows one. A phone cannot scan its own screen, so its text differs. */
const byDevice = (computer: string, phone: string): Html =>
  html`<span class="computer">${computer}</span><span class="phone">${phone}</span>`;

/**
 * Returns links that open the page in a wallet's own browser, because a phone's browser has no wallets. Plain links
 * need no script.
 */
function openInWallets({ words, link, ways }: Page): Html {
  const { t } = words;
  const wallets = listWalletApps(
    link,
    ways.map(({ chain }) => chain),
  );
  if (wallets.length === 0) return html``;
  return html`<div id="open-in" class="phone"><h2>${t.onThisPhone}</h2><p>${t.openHint}</p><ul class="stack">${wallets.map(
    ({ wallet, href }) =>
      html`<li><a class="button main wide" href="${href}" rel="noreferrer">${fill(t.openIn, { wallet })}</a></li>`,
  )}</ul></div>`;
}

function withoutScript(page: Page): Html {
  const { t } = page.words;
  const toggle = isRefreshing(page)
    ? html`<a class="plain" href="${page.path}">${t.checkOnce}</a>`
    : html`<a class="plain" href="${page.path}&amp;refresh=1">${t.checkAlways}</a>`;
  return html`<noscript><p>${t.noScript} <a class="plain" href="${page.path}">${t.recheck}</a> ${toggle}</p></noscript>`;
}

function processingSection(page: Page): Html {
  const { view, words, fillHtml } = page;
  const { t } = words;
  const isLong = view.state === "processing" && view.sinceMs >= LONG_PROCESSING_MS;
  return html`<section id="processing" aria-labelledby="processing-title"${hiddenUnless(view.state === "processing")}>
    ${waitMark}<h1 id="processing-title" tabindex="-1">${t.processingTitle}</h1>
    <p>${t.processingText}</p>
    <p id="may-close"${isLong ? "" : html` class="later"`}>${fillHtml(t.mayClose)}</p>
    ${withoutScript(page)}
  </section>`;
}

/** The section of an open payment that no asset can pay any more: the merchant's destination or a price is gone. */
function unpayableSection(page: Page): Html {
  const { t } = page.words;
  const { money, when } = moneyLines(page);
  return html`<section id="unpayable" aria-labelledby="unpayable-title"${hiddenUnless(sectionOf(page) === "unpayable")}>
    ${endMark("failed")}<h1 id="unpayable-title" tabindex="-1">${t.unpayableTitle}</h1>${money}
    <p${when}>${page.fillHtml(t.unpayableText)}</p>
    <div class="stack"><a class="button wide" href="${page.path}">${t.recheck}</a></div>
  </section>`;
}

/**
 * Returns the lines that say first whether money moved, which is the buyer's main concern. `when` hides a text about
 * paying again while that is unclear.
 */
function moneyLines({ view, words, fillHtml }: Page): { money: Html; when: Html } {
  const [none, unclear] = [view.money !== "unclear", view.money === "unclear"].map(hiddenUnless);
  return {
    money: html`<p class="strong" data-money="none"${none}>${words.t.moneyNone}</p>
    <p class="strong" data-money="unclear"${unclear}>${fillHtml(words.t.moneyUnclear)}</p>`,
    when: html` data-money="none"${none}`,
  };
}

type End = "succeeded" | "failed" | "expired" | "cancelled";

function endSection(page: Page, state: End, title: string, text: string): Html {
  const { view, fillHtml } = page;
  // A buyer who may have paid is not asked to pay again.
  const { money, when } = state === "succeeded" ? {} : moneyLines(page);
  return html`<section id="${state}" aria-labelledby="${state}-title"${hiddenUnless(view.state === state)}>
    ${endMark(state)}<h1 id="${state}-title" tabindex="-1">${title}</h1>${money}
    <p${when}>${fillHtml(text)}</p>
  </section>`;
}

/** The ways back to the shop: a link, and a countdown that the buyer can switch off at any time. */
function returnLinks({ view, words, fillHtml, appUrl }: Page): Html {
  const { t } = words;
  const back = view.returnUrl
    ? html`<a id="back" class="button main wide" href="${view.returnUrl}" rel="noreferrer"><span>${fillHtml(t.backToShop)}</span></a>`
    : html`<a id="back" class="button main wide" hidden><span>${fillHtml(t.backToShop)}</span></a>`;
  // Hidden until the script finds an app's web view: anyone can write an app's address into a link.
  const app = appUrl && html`<a id="app" class="button wide" href="${appUrl}" hidden>${t.backToApp}</a>`;
  return html`
    ${view.returns && html`<label id="auto-label" class="check script"${hiddenUnless(!view.isFinal)}><input type="checkbox" id="auto" checked> <span>${fillHtml(t.goBackAuto)}</span></label>`}
    <div id="end" class="stack"${hiddenUnless(view.isFinal)}>
    <p id="leaving" hidden><span id="leaving-text"></span></p>
    <button type="button" id="stay" class="wide" hidden>${t.stay}</button>
    ${back}${app}
    <p id="can-close"${hiddenUnless(view.returnUrl === null)}>${t.canClose}</p></div>`;
}

function facts({ view, words }: Page): Html {
  const { t } = words;
  const reference = view.referenceId && html`<dt>${t.reference}</dt><dd><bdi>${view.referenceId}</bdi></dd>`;
  const href = view.txUrl && html` href="${view.txUrl}" target="_blank" rel="noreferrer"`;
  const transaction = html`<dt data-tx${hiddenUnless(view.info !== null)}>${t.transaction}</dt><dd data-tx${hiddenUnless(view.info !== null)}><a id="tx" dir="ltr"${href}>${view.info?.txId}</a></dd>`;
  // The text asks the buyer to quote the payment number, so the details are open.
  const open = view.money === "unclear" && html` open`;
  return html`<details id="facts"${open}><summary>${t.details}</summary><dl>${reference}<dt>${t.paymentNumber}</dt><dd><bdi>${view.paymentId}</bdi></dd>${transaction}</dl></details>`;
}

/** Returns the data for the page's script, without its texts. The numbers that differ in every page come last (`packed-checkout.ts`). */
function toScriptData(page: Page): Omit<CheckoutData, "texts"> {
  const { view, words, base, language, ways } = page;
  const { t: _, ...values } = words;
  const { leftMs, ...status } = toStatusPayload(view);
  return {
    ...status,
    base: `${base}/checkout/${view.paymentId}`,
    language: language.tag,
    dataQuery: String(new URLSearchParams({ back: "1", ...writePreferences(page) })),
    patienceMs: LONG_PROCESSING_MS,
    values,
    titles: titles(words),
    // Each network once, in the order of the networks file.
    networks: [...new Map(ways.map(({ chain, network }) => [chain, network]))],
    additions: Object.fromEntries(ways.flatMap(toAdditions)),
    leftMs,
    sinceMs: view.sinceMs,
  };
}

/** The texts for the script in each language. They never change, so the layout writes them once. */
const scriptTextsOf = new Map<Language, CheckoutData["texts"]>();

function listScriptTexts(language: Language): CheckoutData["texts"] {
  const found = scriptTextsOf.get(language);
  if (found) return found;
  const texts = Object.fromEntries(scriptTexts.map((name) => [name, language.texts[name]])) as CheckoutData["texts"];
  scriptTextsOf.set(language, texts);
  return texts;
}

function toAdditions({ chain, network, networkDetails }: Way): [string, NetworkAddition][] {
  if (!networkDetails) return [];
  const { rpc: rpcUrls, explorer, currency } = networkDetails;
  const nativeCurrency = { ...currency, decimals: 18 as const };
  const explorers = explorer ? { blockExplorerUrls: [explorer] } : {};
  return [[chain, { chainName: network, rpcUrls, ...explorers, nativeCurrency }]];
}
