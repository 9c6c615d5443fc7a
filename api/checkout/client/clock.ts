import { announce, byId } from "./page.ts";
import { isUnderway } from "./panel.ts";
import { words } from "./told.ts";

/** Told to screen readers, and only these: a clock that talks every second drowns everything else. */
const warnings = [
  { ms: 120_000, text: "left120" },
  { ms: 60_000, text: "left60" },
  { ms: 20_000, text: "left20" },
] as const;

/**
 * Shows how long is left. Counted from the server's duration by the browser's stopwatch: what the buyer's clock says
 * does not matter. At zero nothing is decided here; the server is asked.
 */
export function startClock(over: () => void) {
  let end = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  let told = Number.POSITIVE_INFINITY;

  function tick(): void {
    const left = Math.max(0, end - performance.now());
    byId("time").textContent = write(left);
    const due = warnings.filter(({ ms }) => left <= ms && ms < told).pop();
    // Nobody is warned of what was so from the beginning, nor told to hurry while a payment is under way.
    if (due && told !== Number.POSITIVE_INFINITY && !isUnderway()) announce(words(due.text));
    told = Math.min(told, due?.ms ?? 240_000_000);
    if (left > 0) return;
    clearInterval(timer);
    over();
  }
  return {
    /** @param at when the answer came that says how much is left, on the browser's stopwatch */
    set(leftMs: number, at: number): void {
      end = at + leftMs;
      clearInterval(timer);
      timer = setInterval(tick, 250);
      tick();
    },
    stop: () => clearInterval(timer),
  };
}

function write(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const [minutes, hours] = [Math.floor(seconds / 60) % 60, Math.floor(seconds / 3_600)];
  const two = (part: number): string => String(part).padStart(2, "0");
  const rest = `${hours > 0 ? two(minutes) : minutes}:${two(seconds % 60)}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}
