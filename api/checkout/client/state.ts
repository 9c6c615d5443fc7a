import type { News, ScriptText, Status } from "../script-data.ts";
import { tellApp } from "./app.ts";
import { startClock } from "./clock.ts";
import { leaveFor, willLeave } from "./leave.ts";
import { announce, byId } from "./page.ts";
import { data, words } from "./told.ts";

const sections: readonly Status[] = ["requires_action", "processing", "succeeded", "failed", "expired", "cancelled"];
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
  // Who has to look for the payment's number finds it where the text is over.
  if (news.money === "unclear") write(news);
  else inPlace(() => write(news));
  tellNews(news);
  for (const listener of listeners) listener(news);
}

function write(news: News): void {
  for (const section of sections) byId(section).hidden = section !== news.status;
  // What is to be paid stands in the title of the first section.
  byId("sum").hidden = news.status === "requires_action";
  for (const line of document.querySelectorAll<HTMLElement>("[data-money]"))
    line.hidden = (line.dataset.money === "unclear") !== (news.money === "unclear");
  if (news.money === "unclear") byId<HTMLDetailsElement>("facts").open = true;
  document.title = `${data.titles[news.status]} – ${data.values.shop}`;
  if (news.status === "processing") calmDown(data.patienceMs);
  if (news.isFinal) finish(news);
}

let room = 0;
/** Changes what stands above the details; they and all below them stay where they are, with room above when there is less. */
function inPlace(change: () => void): void {
  const facts = byId("facts");
  const before = facts.offsetTop;
  change();
  room = Math.max(0, room + before - facts.offsetTop);
  facts.style.marginTop = room > 0 ? `${room}px` : "";
}

/** The result takes the focus, so that keyboards and screen readers are where the news is. */
function tellNews({ status, money, returnUrl }: News): void {
  if (status === "requires_action") return;
  const isLost = status === "failed" || status === "expired" || status === "cancelled";
  const lines = isLost ? [...said[status], money === "unclear" ? "moneyUnclear" : "moneyNone"] : said[status];
  // Who cannot see the countdown has to know of it too, while Escape still helps.
  const leaving = returnUrl !== null && willLeave() ? [words("leaving", { seconds: 3 })] : [];
  announce([...lines.map((line) => words(line as ScriptText)), ...leaving].join(" "));
  byId(`${status}-title`).focus({ preventScroll: true });
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

/** A slow network is no reason to stay, nor to pay again. */
function calmDown(afterMs: number): void {
  setTimeout(
    () =>
      inPlace(() => {
        byId("may-close").hidden = false;
      }),
    Math.max(0, afterMs),
  );
}
