import { announce, button, byId, show } from "./dom.ts";
import { localize } from "./page-data.ts";
import type { Wallet } from "./wallet-interface.ts";

/**
 * Time after which the page says that it found no wallet, milliseconds. Wallets that announce themselves later are
 * still listed.
 */
const SEARCH_MS = 1_200;

const list = byId("wallets");
const searching = byId("searching");
const step = byId("step");
const choices = byId("choices");
const problem = byId("problem");

/** Starts the timer that says that no wallet was found. */
export function startSearchTimeout(): void {
  setTimeout(() => {
    if (!searching.hidden) searching.textContent = localize("noWalletHere");
  }, SEARCH_MS);
}

/** Shows one button per wallet; the buttons are hidden while a wallet is in use. */
export function showWallets(
  wallets: Iterable<Wallet>,
  labelFor: (wallet: Wallet) => string,
  use: (wallet: Wallet) => void,
): void {
  const items = [...wallets].map((wallet) => {
    const item = document.createElement("li");
    const icon = wallet.icon === undefined ? {} : { icon: wallet.icon };
    item.append(button(labelFor(wallet), () => use(wallet), icon));
    return item;
  });
  list.replaceChildren(...items);
  list.hidden = items.length === 0 || !choices.hidden || !step.hidden;
  searching.hidden = items.length > 0;
  // On a phone the buttons replace the links that open the page in a wallet's browser.
  byId("here").classList.toggle("found", items.length > 0);
}

/** Shows the current step; the buttons let the buyer leave it. */
export function showProgress(text: string, ...buttons: HTMLElement[]): void {
  byId("pay").classList.add("used");
  show(problem, undefined);
  show(step, text);
  choices.replaceChildren(...buttons);
  choices.hidden = buttons.length === 0;
  list.hidden = true;
}

/** Shows what the buyer has to do in their wallet, and announces it to screen readers. */
export function promptBuyer(text: string, ...buttons: HTMLElement[]): void {
  showProgress(text, ...buttons);
  announce(text);
}

/** Shows a payment under way: hides every way to pay and the text that nothing has been charged. */
export function showUnderway(text: string, ...buttons: HTMLElement[]): void {
  promptBuyer(text, ...buttons);
  hideWaysToPay();
}

/** Shows that the payment may be under way while its transaction is unknown; hides every way to pay. */
export function showUncertain(text: string, ...buttons: HTMLElement[]): void {
  showProgress("", ...buttons);
  show(step, undefined);
  show(problem, text);
  hideWaysToPay();
}

const sectionClasses = byId("requires_action").classList;
const hideWaysToPay = (): void => sectionClasses.add("underway");
export const isUnderway = (): boolean => sectionClasses.contains("underway");

/** Shows choices; the first one takes the focus. */
export function showChoices(text: string, ...buttons: HTMLElement[]): void {
  showProgress(text, ...buttons);
  buttons[0]?.focus();
}

/** Returns to the list of wallets, and shows an error if there was one. */
export function reset(text: string | undefined): void {
  sectionClasses.remove("underway");
  show(step, undefined);
  choices.hidden = true;
  show(problem, text);
  list.hidden = list.children.length === 0;
  list.querySelector("button")?.focus();
}
