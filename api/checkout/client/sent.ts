import { data } from "./told.ts";

/** What a wallet hands back for one action. */
export type Result = { type: "walletRpc"; data: [string] };
/** A transaction that may be under way: the option it pays, and its hash, once the wallet has told it. */
export type Sent = { optionId: string; results?: Result[] };
type Kept = Record<string, Sent & { until: number }>;

const KEY = "sent";
/** So long after its deadline a payment has ended, milliseconds, also where a transaction was waited for. */
const LATEST_MS = 60_000;

/**
 * What this browser has sent, by payment. It outlives the page, so that neither a reload nor another tab offers to pay
 * again. Kept until the payment has ended by time: then its state says what became of the money.
 */
function read(): Kept {
  try {
    const kept = Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "{}") as Kept);
    return Object.fromEntries(kept.filter(([, { until }]) => until > Date.now()));
  } catch {
    // A browser that keeps nothing, or something else under this name.
    return {};
  }
}

function write(kept: Kept): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // The page itself still knows.
  }
}

/** Keeps what may have been sent for this payment. */
export const keepSent = (sent: Sent): void =>
  write({ ...read(), [data.base]: { ...sent, until: Date.now() + data.leftMs + LATEST_MS } });

/** Returns what may have been sent for this payment. */
export const findSent = (): Sent | undefined => read()[data.base];

/** Nothing is under way any more, or the payment's own state says so. */
export function forgetSent(): void {
  const { [data.base]: _, ...others } = read();
  write(others);
}

/** Calls back when another tab has kept or forgotten something. */
export const onOtherTab = (changed: () => void): void =>
  addEventListener("storage", ({ key }) => key === KEY && changed());
