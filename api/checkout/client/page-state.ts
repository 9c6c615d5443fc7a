import type { ScriptText, Status, StatusPayload } from "../pages/script-data.ts";
import { notifyApp, showAppLink } from "./app-bridge.ts";
import { startCountdown } from "./countdown.ts";
import { announce, byId, findNavigation } from "./dom.ts";
import { data, localize } from "./page-data.ts";
import { returnsAutomatically, returnToShop } from "./return-to-shop.ts";

const sections = [
  "requires_action",
  "unpayable",
  "processing",
  "succeeded",
  "failed",
  "expired",
  "cancelled",
] as const satisfies (Status | "unpayable")[];
type Section = (typeof sections)[number];
const announcements: Record<Exclude<Status, "requires_action">, ScriptText[]> = {
  processing: ["processingTitle", "processingText"],
  succeeded: ["succeededTitle"],
  failed: ["failedTitle"],
  expired: ["expiredTitle"],
  cancelled: ["cancelledTitle"],
};

let shown: StatusPayload = data;
const listeners: ((payment: StatusPayload) => void)[] = [];

export const version = (): number => shown.version;
export const status = (): Status => shown.status;

/** Registers a listener that is called when the state changes. */
export const onChange = (listener: (payment: StatusPayload) => void): void => void listeners.push(listener);

let clock: ReturnType<typeof startCountdown>;

/** Starts the page in the state that the server has rendered, so nothing moves. `onZero` runs when the time is over. */
export function begin(onZero: () => void): void {
  clock = startCountdown(onZero);
  showAppLink();
  if (data.status === "requires_action") clock.set(data.leftMs, findNavigation()?.responseStart ?? 0);
  if (data.status === "processing") scheduleMayClose(data.patienceMs - data.sinceMs);
  if (data.isFinal) finish(data);
}

/** Shows a status, unless it is older than the one on the page: responses may arrive out of order. */
export function apply(next: StatusPayload): void {
  if (next.version < shown.version) return;
  if (next.status === "requires_action") clock.set(next.leftMs, performance.now());
  if (next.version === shown.version) return;
  const before = shown.status;
  shown = next;
  if (next.status === before) return;

  if (next.status !== "requires_action") clock.stop();
  render(next);
  announceStatus(next);
  for (const listener of listeners) listener(next);
}

/** Shows the section of the status and hides all others. */
function render(payment: StatusPayload): void {
  showSection(payment.status, payment.money);
  if (payment.status === "processing") scheduleMayClose(data.patienceMs);
  if (payment.isFinal) finish(payment);
}

function showSection(shown: Section, money: StatusPayload["money"]): void {
  for (const section of sections) byId(section).hidden = section !== shown;
  // The title of the first section shows the amount already.
  byId("sum").hidden = shown === "requires_action";
  for (const line of document.querySelectorAll<HTMLElement>("[data-money]"))
    line.hidden = (line.dataset["money"] === "unclear") !== (money === "unclear");
  // The text asks the buyer to quote the payment number, which the details show.
  if (money === "unclear") byId<HTMLDetailsElement>("facts").open = true;
  document.title = `${data.titles[shown]} – ${data.values["shop"]}`;
}

/** Shows that no asset can pay this open payment any more; `money` is what may have become of the buyer's money. */
export function showUnpayable(money: StatusPayload["money"]): void {
  showSection("unpayable", money);
  announce([data.titles.unpayable, localize(money === "unclear" ? "moneyUnclear" : "moneyNone")].join(" "));
  focusOn("unpayable");
}

/**
 * Shows the payment section, also for a payment that cannot be paid any more: it shows a transaction that was sent
 * before.
 */
export const showPaymentSection = (): void => showSection("requires_action", shown.money);

/** Announces the new state and moves the focus to its title, for buyers with a keyboard or a screen reader. */
function announceStatus({ status, money, returnUrl }: StatusPayload): void {
  if (status === "requires_action") return;
  const isLost = status === "failed" || status === "expired" || status === "cancelled";
  const lines: ScriptText[] = isLost
    ? [...announcements[status], money === "unclear" ? "moneyUnclear" : "moneyNone"]
    : announcements[status];
  // Screen readers announce the countdown too, while Escape can still stop it.
  const leaving = returnUrl !== null && returnsAutomatically() ? [localize("leaving", { seconds: 3 })] : [];
  announce([...lines.map((line) => localize(line)), ...leaving].join(" "));
  focusOn(status);
}

function focusOn(section: Exclude<Section, "requires_action">): void {
  byId(`${section}-title`).focus({ preventScroll: true });
  scrollTo({ top: 0 });
}

function finish(payment: StatusPayload): void {
  const label = document.getElementById("auto-label");
  if (label) label.hidden = true;
  byId("end").hidden = false;
  const tx = byId<HTMLAnchorElement>("tx");
  tx.textContent = payment.txId;
  if (payment.txUrl) Object.assign(tx, { href: payment.txUrl, target: "_blank", rel: "noreferrer" });
  for (const line of document.querySelectorAll<HTMLElement>("[data-tx]")) line.hidden = payment.txId === null;
  notifyApp(payment.status === "succeeded", data.titles[payment.status]);
  if (payment.returnUrl) returnToShop(payment.returnUrl);
}

/** Shows, once the network takes long, that the buyer may close the page. The text has its space, so nothing moves. */
function scheduleMayClose(afterMs: number): void {
  setTimeout(() => byId("may-close").classList.remove("later"), Math.max(0, afterMs));
}
