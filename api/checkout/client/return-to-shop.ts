import { byId, findNavigation, show } from "./dom.ts";
import { localize } from "./page-data.ts";

/** From the specification, milliseconds. */
const COUNTDOWN_MS = 3_000;

/** Returns whether the buyer lets the page return to the shop by itself; false when the page has no such checkbox. */
export const returnsAutomatically = (): boolean => document.querySelector<HTMLInputElement>("#auto")?.checked ?? false;

/** Counts down and returns to the shop, unless the buyer has switched that off or stops the countdown. */
export function returnToShop(url: string): void {
  const back = byId<HTMLAnchorElement>("back");
  back.href = url;
  back.hidden = false;
  byId("can-close").hidden = true;
  // A buyer who came back with the Back button is not redirected again.
  if (!returnsAutomatically() || findNavigation()?.type === "back_forward") return;

  const [leaving, stay] = [byId("leaving"), byId<HTMLButtonElement>("stay")];
  const end = performance.now() + COUNTDOWN_MS;
  const tick = (): void => {
    const left = end - performance.now();
    show(byId("leaving-text"), localize("leaving", { seconds: Math.max(1, Math.ceil(left / 1_000)) }));
    if (left > 0) return;
    stop();
    // The shop replaces this history entry: Back from the shop leads to the page before the checkout.
    location.replace(url);
  };
  const timer = setInterval(tick, 100);
  const stop = (): void => {
    clearInterval(timer);
    removeEventListener("keydown", onKey);
    removeEventListener("pagehide", stop);
    back.removeEventListener("click", go);
    // The button keeps its space, so that nothing below moves under the buyer's finger.
    stay.classList.add("later");
  };
  const stayHere = (): void => {
    const hadFocus = document.activeElement === stay;
    stop();
    show(byId("leaving-text"), localize("staying"));
    if (hadFocus) back.focus();
  };
  // The buyer clicked the link: the countdown must not navigate a second time while the shop loads.
  const go = (): void => {
    stop();
    leaving.hidden = true;
  };
  const onKey = ({ key }: KeyboardEvent): void => {
    if (key === "Escape") stayHere();
  };
  addEventListener("keydown", onKey);
  addEventListener("pagehide", stop);
  back.addEventListener("click", go);
  stay.addEventListener("click", stayHere);
  leaving.hidden = false;
  stay.hidden = false;
  tick();
}
