import type { News, ScriptText, Status } from "../script-data.ts";
import { offerApp, tellApp } from "./app.ts";
import { startClock } from "./clock.ts";
import { leaveFor, willLeave } from "./leave.ts";
import { announce, byId } from "./page.ts";
import { data, words } from "./told.ts";

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
const said: Record<Exclude<Status, "requires_action">, ScriptText[]> = {
  processing: ["processingTitle", "processingText"],
  succeeded: ["succeededTitle"],
  failed: ["failedTitle"],
  expired: ["expiredTitle"],
  cancelled: ["cancelledTitle"],
};

let shown: News = data;
const listeners: ((news: News) => void)[] = [];

export const version = (): number => shown.version;
export const status = (): Status => shown.status;

/** Is called with every change of state. */
export const onChange = (listener: (news: News) => void): void => void listeners.push(listener);

/** Shows what is true at the first sight; the server has written it, so nothing moves. */
export function begin(over: () => void): void {
  clock = startClock(over);
  offerApp();
  const [navigation] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  if (data.status === "requires_action") clock.set(data.leftMs, navigation?.responseStart ?? 0);
  if (data.status === "processing") calmDown(data.patienceMs - data.sinceMs);
  if (data.isFinal) finish(data);
}
let clock: ReturnType<typeof startClock>;

/** Shows news, if they are any: an answer may be older than what is shown. */
export function apply(news: News): void {
  if (news.version < shown.version) return;
  if (news.status === "requires_action") clock.set(news.leftMs, performance.now());
  if (news.version === shown.version) return;
  const before = shown.status;
  shown = news;
  if (news.status === before) return;

  if (news.status !== "requires_action") clock.stop();
  write(news);
  tellNews(news);
  for (const listener of listeners) listener(news);
}

/** A state has the page to itself: what another one has held open closes. */
function write(news: News): void {
  showSection(news.status, news.money);
  if (news.status === "processing") calmDown(data.patienceMs);
  if (news.isFinal) finish(news);
}

function showSection(shown: Section, money: News["money"]): void {
  for (const section of sections) byId(section).hidden = section !== shown;
  // What is to be paid stands in the title of the first section.
  byId("sum").hidden = shown === "requires_action";
  for (const line of document.querySelectorAll<HTMLElement>("[data-money]"))
    line.hidden = (line.dataset.money === "unclear") !== (money === "unclear");
  // Who has to look for the payment's number finds it.
  if (money === "unclear") byId<HTMLDetailsElement>("facts").open = true;
  document.title = `${data.titles[shown]} – ${data.values.shop}`;
}

/** A payment that waits and that nothing can pay any more; `money` is what may have become of the buyer's. */
export function showUnpayable(money: News["money"]): void {
  showSection("unpayable", money);
  announce([data.titles.unpayable, words(money === "unclear" ? "moneyUnclear" : "moneyNone")].join(" "));
  focusOn("unpayable");
}

/** The ways to pay, also of a payment that cannot be paid any more: what was sent for it before is followed there. */
export const showWays = (): void => showSection("requires_action", shown.money);

/** The result takes the focus, so that keyboards and screen readers are where the news is. */
function tellNews({ status, money, returnUrl }: News): void {
  if (status === "requires_action") return;
  const isLost = status === "failed" || status === "expired" || status === "cancelled";
  const lines = isLost ? [...said[status], money === "unclear" ? "moneyUnclear" : "moneyNone"] : said[status];
  // Who cannot see the countdown has to know of it too, while Escape still helps.
  const leaving = returnUrl !== null && willLeave() ? [words("leaving", { seconds: 3 })] : [];
  announce([...lines.map((line) => words(line as ScriptText)), ...leaving].join(" "));
  focusOn(status);
}

function focusOn(section: Exclude<Section, "requires_action">): void {
  byId(`${section}-title`).focus({ preventScroll: true });
  scrollTo({ top: 0 });
}

function finish(news: News): void {
  const label = document.getElementById("auto-label");
  if (label) label.hidden = true;
  byId("end").hidden = false;
  const tx = byId<HTMLAnchorElement>("tx");
  tx.textContent = news.txId;
  if (news.txUrl) Object.assign(tx, { href: news.txUrl, target: "_blank", rel: "noreferrer" });
  for (const line of document.querySelectorAll<HTMLElement>("[data-tx]")) line.hidden = news.txId === null;
  tellApp(news.status === "succeeded", data.titles[news.status]);
  if (news.returnUrl) leaveFor(news.returnUrl);
}

/** A slow network is no reason to stay, nor to pay again. There is room for the words, so that nothing moves. */
function calmDown(afterMs: number): void {
  setTimeout(() => byId("may-close").classList.remove("later"), Math.max(0, afterMs));
}
