/** A part of a filter's time that sums answer: spans that begin from `from` and before `before`, dates of Postgres. */
type SpanRange = { span: "day" | "month"; from: string; before: string };
/** A part of a filter's time, of which payments are read one by one. Texts of Postgres timestamps. */
type TimeRange = { from: string; before: string };

/** How a filter's time is read: whole UTC days by sums, what remains at its ends by payments. */
export type SplitTime = { edges: TimeRange[]; days: TimeRange | undefined; spans: SpanRange[] };

const DAY_MS = 86_400_000;
/**
 * The times that a filter distinguishes, both the beginning of a month. No payment is created outside of them. Postgres does not
 * read the years below 1 and above 9999 as `toISOString` writes them.
 */
const [EARLIEST, LATEST] = [Date.UTC(1970, 0), Date.UTC(9999, 11)];

/**
 * Splits a time, which includes its start and excludes its end, into whole months, whole days and the rest. An undefined
 * start or end is unbounded.
 */
export function splitTime(from: Date | undefined, before: Date | undefined): SplitTime {
  return splitClamped(clamp(from), clamp(before));
}

const clamp = (at: Date | undefined): Date | undefined =>
  at && new Date(Math.min(Math.max(at.getTime(), EARLIEST), LATEST));

function splitClamped(from: Date | undefined, before: Date | undefined): SplitTime {
  const start = from && new Date(Math.ceil(from.getTime() / DAY_MS) * DAY_MS);
  const end = before && new Date(Math.floor(before.getTime() / DAY_MS) * DAY_MS);
  const all = { from: from?.toISOString() ?? "-infinity", before: before?.toISOString() ?? "infinity" };
  if (start && end && start >= end) return { edges: [all], days: undefined, spans: [] };
  const days = { from: start?.toISOString() ?? all.from, before: end?.toISOString() ?? all.before };
  const edges = [
    { from: all.from, before: days.from },
    { from: days.before, before: all.before },
  ].filter((edge) => edge.from !== edge.before);
  return { edges, days, spans: splitDays(start, end) };
}

function splitDays(start: Date | undefined, end: Date | undefined): SpanRange[] {
  const [from, before] = [toDay(start) ?? "-infinity", toDay(end) ?? "infinity"];
  const first =
    start && new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + (start.getUTCDate() > 1 ? 1 : 0)));
  const last = end && new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth()));
  if (first && last && first >= last) return [{ span: "day", from, before }];
  const [firstMonth, lastMonth] = [toDay(first) ?? "-infinity", toDay(last) ?? "infinity"];
  const ranges: SpanRange[] = [
    { span: "day", from, before: firstMonth },
    { span: "month", from: firstMonth, before: lastMonth },
    { span: "day", from: lastMonth, before },
  ];
  return ranges.filter((range) => range.from !== range.before);
}

const toDay = (at: Date | undefined): string | undefined => at?.toISOString().slice(0, 10);
