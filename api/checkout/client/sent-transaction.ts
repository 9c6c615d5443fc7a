import { data } from "./page-data.ts";

/** The result of one executed action, as the API takes it. */
export type Result = { type: "walletRpc"; data: [string] };
/** A transaction that may be under way: the option that it pays and, once the wallet has returned it, the hash. */
export type Sent = { optionId: string; results?: Result[] };
type Stored = Record<string, Sent & { until: number }>;

const KEY = "sent";
/** Time after its deadline by which a payment has ended even if the service waited for a transaction, milliseconds. */
const GRACE_MS = 60_000;

/**
 * Returns what this browser has sent, by payment. The storage outlives the page, so that neither a reload nor another tab
 * lets the buyer pay again. An entry expires once the payment has ended: its state then shows what became of the money.
 */
function read(): Stored {
  try {
    const stored: Stored = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return Object.fromEntries(Object.entries(stored).filter(([, { until }]) => until > Date.now()));
  } catch {
    // Storage is not available, or holds something else under this key.
    return {};
  }
}

function write(stored: Stored): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(stored));
  } catch {
    // Storage is not available: this page still has the transaction in memory.
  }
}

/** Stores what may have been sent for this payment. */
export const keepSent = (sent: Sent): void =>
  write({ ...read(), [data.base]: { ...sent, until: Date.now() + data.leftMs + GRACE_MS } });

/** Returns what may have been sent for this payment. */
export const findSent = (): Sent | undefined => read()[data.base];

/** Removes what was sent for this payment: nothing is under way, or the payment's own state shows it. */
export function forgetSent(): void {
  const { [data.base]: _, ...others } = read();
  write(others);
}

/** Calls `changed` when another tab stores or removes an entry. */
export const onOtherTab = (changed: () => void): void =>
  addEventListener("storage", ({ key }) => key === KEY && changed());
