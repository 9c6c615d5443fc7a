import { byId, show } from "./page.ts";
import { words } from "./told.ts";

/** As the specification has it, milliseconds. */
const COUNTDOWN_MS = 3_000;

/** What the buyer has chosen for the end; nothing to choose is no. */
export const willLeave = (): boolean => (document.getElementById("auto") as HTMLInputElement | null)?.checked ?? false;

/** Counts down and leaves for the shop, unless the buyer has switched that off before or stops it now. */
export function leaveFor(url: string): void {
  const back = byId<HTMLAnchorElement>("back");
  back.href = url;
  back.hidden = false;
  byId("can-close").hidden = true;
  // Who came back on purpose is not sent away again.
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  if (!willLeave() || navigation?.type === "back_forward") return;

  const [leaving, stay] = [byId("leaving"), byId<HTMLButtonElement>("stay")];
  const end = performance.now() + COUNTDOWN_MS;
  const tick = (): void => {
    const left = end - performance.now();
    show(byId("leaving-text"), words("leaving", { seconds: Math.max(1, Math.ceil(left / 1_000)) }));
    if (left > 0) return;
    stop();
    // The page gives its place in the history up: Back from the shop leads to before it.
    location.replace(url);
  };
  const timer = setInterval(tick, 100);
  const stop = (): void => {
    clearInterval(timer);
    removeEventListener("keydown", onKey);
    removeEventListener("pagehide", stop);
    back.removeEventListener("click", go);
    // It leaves its place empty: what stands below does not come under the finger that wants it.
    stay.classList.add("later");
  };
  const remain = (): void => {
    const hadFocus = document.activeElement === stay;
    stop();
    show(byId("leaving-text"), words("staying"));
    if (hadFocus) back.focus();
  };
  // A shop that takes its time is not asked a second time.
  const go = (): void => {
    stop();
    leaving.hidden = true;
  };
  const onKey = ({ key }: KeyboardEvent): void => {
    if (key === "Escape") remain();
  };
  addEventListener("keydown", onKey);
  addEventListener("pagehide", stop);
  back.addEventListener("click", go);
  stay.addEventListener("click", remain);
  leaving.hidden = false;
  stay.hidden = false;
  tick();
}
