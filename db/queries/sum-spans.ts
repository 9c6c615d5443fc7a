export type Span = "day" | "month" | "year";

/** A part of a filter's time that sums answer: spans that begin from `from` and before `before`, dates of Postgres. */
export type SpanRange = { span: Span; from: string; before: string };
/** A part of a filter's time. Texts of Postgres timestamps. */
export type TimeRange = { from: string; before: string };

/** How a filter's time is read: whole UTC days by sums, and what remains at its ends. Days without a start or end are unbounded. */
export type SplitTime = {
  all: TimeRange;
  edges: TimeRange[];
  days: { start: Date | undefined; end: Date | undefined } | undefined;
};

const DAY_MS = 86_400_000;
/**
 * The times that a filter distinguishes, both the beginning of a year. No payment is created outside of them. Postgres does not
 * read the years below 1 and above 9999 as `toISOString` writes them.
 */
const [EARLIEST, LATEST] = [Date.UTC(1970, 0), Date.UTC(9999, 0)];

/**
 * Splits a time, which includes its start and excludes its end, into whole days and the rest. An undefined start or end is
 * unbounded.
 */
export function splitTime(since: Date | undefined, until: Date | undefined): SplitTime {
  const [from, before] = [clamp(since), clamp(until)];
  const start = from && new Date(Math.ceil(from.getTime() / DAY_MS) * DAY_MS);
  const end = before && new Date(Math.floor(before.getTime() / DAY_MS) * DAY_MS);
  const all = { from: from?.toISOString() ?? "-infinity", before: before?.toISOString() ?? "infinity" };
  if (start && end && start >= end) return { all, edges: [all], days: undefined };
  const edges = [
    { from: all.from, before: start?.toISOString() ?? all.from },
    { from: end?.toISOString() ?? all.before, before: all.before },
  ].filter((edge) => edge.from !== edge.before);
  return { all, edges, days: { start, end } };
}

/** Splits days into the largest of these spans that fit. The largest comes first, and the last one is the day. */
export function splitDays(
  start: Date | undefined,
  end: Date | undefined,
  [span, ...finer]: readonly Span[],
): SpanRange[] {
  const [from, before] = [toDay(start) ?? "-infinity", toDay(end) ?? "infinity"];
  if (!span || from === before) return [];
  if (span === "day") return [{ span, from, before }];
  const [first, last] = [start && floor(new Date(start.getTime() - DAY_MS), span, 1), end && floor(end, span, 0)];
  if (first && last && first >= last) return splitDays(start, end, finer);
  return [
    ...(start ? splitDays(start, first, finer) : []),
    { span, from: toDay(first) ?? "-infinity", before: toDay(last) ?? "infinity" },
    ...(end ? splitDays(last, end, finer) : []),
  ];
}

/** Returns the beginning of the month or year of a day, or of one of those after it. */
const floor = (day: Date, span: Span, later: number): Date =>
  span === "year"
    ? new Date(Date.UTC(day.getUTCFullYear() + later, 0))
    : new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + later));

const clamp = (at: Date | undefined): Date | undefined =>
  at && new Date(Math.min(Math.max(at.getTime(), EARLIEST), LATEST));

const toDay = (at: Date | undefined): string | undefined => at?.toISOString().slice(0, 10);
