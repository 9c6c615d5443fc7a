import { announce, byId } from "./dom.ts";
import { localize } from "./page-data.ts";
import { isUnderway } from "./wallet-panel.ts";

/** Announced to screen readers at these times only: a countdown that speaks every second drowns out everything else. */
const warnings = [
  { ms: 120_000, text: "left120" },
  { ms: 60_000, text: "left60" },
  { ms: 20_000, text: "left20" },
] as const;

/**
 * Shows the time left. Counts down the server's duration on the browser's monotonic clock, so the buyer's wall clock does
 * not matter. At zero the page decides nothing: `onZero` asks the server.
 */
export function startCountdown(onZero: () => void) {
  let end = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  let lastWarningMs = Number.POSITIVE_INFINITY;

  function tick(): void {
    const left = Math.max(0, end - performance.now());
    byId("time").textContent = write(left);
    const due = warnings.filter(({ ms }) => left <= ms && ms < lastWarningMs).pop();
    // No warning for a threshold that had passed when the page was opened, nor while a payment is under way.
    if (due && lastWarningMs !== Number.POSITIVE_INFINITY && !isUnderway()) announce(localize(due.text));
    lastWarningMs = Math.min(lastWarningMs, due?.ms ?? 240_000_000);
    if (left > 0) return;
    clearInterval(timer);
    onZero();
  }
  return {
    /** @param at when the response with `leftMs` arrived, by `performance.now()` */
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
