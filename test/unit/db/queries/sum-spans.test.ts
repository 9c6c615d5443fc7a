import { expect, test } from "vitest";
import { type Span, splitDays, splitTime } from "../../../../db/queries/sum-spans.ts";

const at = (text: string) => new Date(text);
const months = ["month", "day"] as const;

/** Returns the spans of a time's whole days. */
function spansOf(from: Date | undefined, before: Date | undefined, levels: readonly Span[] = months) {
  const { days } = splitTime(from, before);
  return days ? splitDays(days.start, days.end, levels) : [];
}

test("a time without bounds is read by the largest span", () => {
  expect(splitTime(undefined, undefined)).toMatchObject({ edges: [], all: { from: "-infinity", before: "infinity" } });
  expect(spansOf(undefined, undefined)).toEqual([{ span: "month", from: "-infinity", before: "infinity" }]);
  expect(spansOf(undefined, undefined, ["year", "day"])).toEqual([
    { span: "year", from: "-infinity", before: "infinity" },
  ]);
});

test("a long time is read by months, by days at both ends, and by payments in its first and last day", () => {
  const [from, before] = [at("2026-01-30T12:00:00Z"), at("2026-04-02T00:00:00.001Z")];
  expect(splitTime(from, before).edges).toEqual([
    { from: "2026-01-30T12:00:00.000Z", before: "2026-01-31T00:00:00.000Z" },
    { from: "2026-04-02T00:00:00.000Z", before: "2026-04-02T00:00:00.001Z" },
  ]);
  expect(spansOf(from, before)).toEqual([
    { span: "day", from: "2026-01-31", before: "2026-02-01" },
    { span: "month", from: "2026-02-01", before: "2026-04-01" },
    { span: "day", from: "2026-04-01", before: "2026-04-02" },
  ]);
});

test("a time of years is read by years, by months and days at both ends", () => {
  expect(spansOf(at("2023-10-31T00:00:00Z"), at("2026-02-02T00:00:00Z"), ["year", ...months])).toEqual([
    { span: "day", from: "2023-10-31", before: "2023-11-01" },
    { span: "month", from: "2023-11-01", before: "2024-01-01" },
    { span: "year", from: "2024-01-01", before: "2026-01-01" },
    { span: "month", from: "2026-01-01", before: "2026-02-01" },
    { span: "day", from: "2026-02-01", before: "2026-02-02" },
  ]);
  expect(spansOf(at("2024-01-01T00:00:00Z"), at("2025-01-01T00:00:00Z"), ["year", ...months])).toEqual([
    { span: "year", from: "2024-01-01", before: "2025-01-01" },
  ]);
});

test("a time within two months is read by days", () => {
  const [from, before] = [at("2025-12-31T00:00:00Z"), at("2026-01-20T00:00:00Z")];
  expect(splitTime(from, before).edges).toEqual([]);
  expect(spansOf(from, before, ["year", ...months])).toEqual([
    { span: "day", from: "2025-12-31", before: "2026-01-20" },
  ]);
});

test("a time without a whole day is read by payments, also one that ends before it begins", () => {
  for (const [from, before] of [
    ["2026-01-01T00:00:01Z", "2026-01-02T23:59:59Z"],
    ["2026-03-01T05:00:00Z", "2026-02-01T05:00:00Z"],
    ["2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"],
  ] as const) {
    const all = { from: at(from).toISOString(), before: at(before).toISOString() };
    expect(splitTime(at(from), at(before))).toEqual({ all, edges: [all], days: undefined });
  }
});

test("a time that only begins or only ends is unbounded at its other side", () => {
  expect(spansOf(at("2026-12-02T00:00:00Z"), undefined)).toEqual([
    { span: "day", from: "2026-12-02", before: "2027-01-01" },
    { span: "month", from: "2027-01-01", before: "infinity" },
  ]);
  expect(spansOf(undefined, at("2026-12-02T00:00:00Z"))).toEqual([
    { span: "month", from: "-infinity", before: "2026-12-01" },
    { span: "day", from: "2026-12-01", before: "2026-12-02" },
  ]);
});

test("a time of years that Postgres does not read is one that no payment precedes or follows", () => {
  const times = [at("0000-01-01T00:00:00+14:00"), at("9999-12-31T23:59:59-05:00")] as const;
  const all = { from: "1970-01-01T00:00:00.000Z", before: "9999-01-01T00:00:00.000Z" };
  expect(splitTime(...times)).toMatchObject({ all, edges: [] });
  expect(spansOf(...times, ["year", ...months])).toEqual([{ span: "year", from: "1970-01-01", before: "9999-01-01" }]);
  for (const time of times) expect(spansOf(time, time)).toEqual([]);
});
