import { announce, button, byId, show } from "./page.ts";
import { words } from "./told.ts";
import type { Wallet } from "./wallets.ts";

/** No wallet has shown up by then, milliseconds; those that come later are offered all the same. */
const SEARCH_MS = 1_200;

const [list, searching, step, choices, problem] = ["wallets", "searching", "step", "choices", "problem"].map((id) =>
  byId(id),
) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];

/** Says after a while that there is no wallet. */
export function beginSearch(): void {
  setTimeout(() => {
    if (!searching.hidden) searching.textContent = words("noWalletHere");
  }, SEARCH_MS);
}

/** The wallets as buttons; while one of them is being used they wait. */
export function offer(
  wallets: Iterable<Wallet>,
  labelOf: (wallet: Wallet) => string,
  use: (wallet: Wallet) => void,
): void {
  const items = [...wallets].map((wallet) => {
    const item = document.createElement("li");
    const icon = wallet.icon === undefined ? {} : { icon: wallet.icon };
    item.append(button(labelOf(wallet), () => use(wallet), icon));
    return item;
  });
  list.replaceChildren(...items);
  list.hidden = items.length === 0 || !choices.hidden || !step.hidden;
  searching.hidden = items.length > 0;
  // On a phone they take the place of the links that open other wallets.
  byId("here").classList.toggle("found", items.length > 0);
}

/** What is going on; the buttons are the buyer's ways out of it. */
export function doing(text: string, ...buttons: HTMLElement[]): void {
  byId("pay").classList.add("used");
  show(problem, undefined);
  show(step, text);
  choices.replaceChildren(...buttons);
  choices.hidden = buttons.length === 0;
  list.hidden = true;
}

/** What the buyer has to do now, in his wallet: told to screen readers too. */
export function asking(text: string, ...buttons: HTMLElement[]): void {
  doing(text, ...buttons);
  announce(text);
}

/** The money may be on its way: the buyer sees neither that nothing was charged yet, nor any way to pay. */
export function follow(text: string, ...buttons: HTMLElement[]): void {
  asking(text, ...buttons);
  hideOffers();
}

/** The same, where nobody knows whether it is. */
export function warn(text: string, ...buttons: HTMLElement[]): void {
  doing("", ...buttons);
  show(step, undefined);
  show(problem, text);
  hideOffers();
}

const offers = byId("requires_action").classList;
const hideOffers = (): void => offers.add("underway");
export const isUnderway = (): boolean => offers.contains("underway");

/** Something to choose from; the first takes the focus. */
export function choose(text: string, ...buttons: HTMLElement[]): void {
  doing(text, ...buttons);
  buttons[0]?.focus();
}

/** Back to the ways to pay, with what went wrong, if anything; no button stays dead. */
export function giveBack(text: string | undefined): void {
  offers.remove("underway");
  show(step, undefined);
  choices.hidden = true;
  show(problem, text);
  list.hidden = list.children.length === 0;
  list.querySelector("button")?.focus();
}
