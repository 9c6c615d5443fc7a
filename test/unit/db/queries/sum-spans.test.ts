import { expect, test } from "vitest";
import { splitTime } from "../../../../db/queries/sum-spans.ts";

const at = (text: string) => new Date(text);

test("a time without bounds is read by months", () => {
  expect(splitTime(undefined, undefined)).toEqual({
    edges: [],
    days: { from: "-infinity", before: "infinity" },
    spans: [{ span: "month", from: "-infinity", before: "infinity" }],
  });
});

test("a long time is read by months, by days at both ends, and by payments in its first and last day", () => {
  const time = splitTime(at("2026-01-30T12:00:00Z"), at("2026-04-02T00:00:00.001Z"));
  expect(time.edges).toEqual([
    { from: "2026-01-30T12:00:00.000Z", before: "2026-01-31T00:00:00.000Z" },
    { from: "2026-04-02T00:00:00.000Z", before: "2026-04-02T00:00:00.001Z" },
  ]);
  expect(time.days).toEqual({ from: "2026-01-31T00:00:00.000Z", before: "2026-04-02T00:00:00.000Z" });
  expect(time.spans).toEqual([
    { span: "day", from: "2026-01-31", before: "2026-02-01" },
    { span: "month", from: "2026-02-01", before: "2026-04-01" },
    { span: "day", from: "2026-04-01", before: "2026-04-02" },
  ]);
});

test("a time within two months is read by days", () => {
  const { edges, spans } = splitTime(at("2025-12-31T00:00:00Z"), at("2026-01-20T00:00:00Z"));
  expect(edges).toEqual([]);
  expect(spans).toEqual([{ span: "day", from: "2025-12-31", before: "2026-01-20" }]);
});

test("a time without a whole day is read by payments, also one that ends before it begins", () => {
  for (const [from, before] of [
    ["2026-01-01T00:00:01Z", "2026-01-02T23:59:59Z"],
    ["2026-03-01T05:00:00Z", "2026-02-01T05:00:00Z"],
    ["2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"],
  ] as const)
    expect(splitTime(at(from), at(before))).toEqual({
      edges: [{ from: at(from).toISOString(), before: at(before).toISOString() }],
      days: undefined,
      spans: [],
    });
});

test("a time that only begins or only ends is unbounded at its other side", () => {
  expect(splitTime(at("2026-12-02T00:00:00Z"), undefined).spans).toEqual([
    { span: "day", from: "2026-12-02", before: "2027-01-01" },
    { span: "month", from: "2027-01-01", before: "infinity" },
  ]);
  expect(splitTime(undefined, at("2026-12-02T00:00:00Z")).spans).toEqual([
    { span: "month", from: "-infinity", before: "2026-12-01" },
    { span: "day", from: "2026-12-01", before: "2026-12-02" },
  ]);
});

test("a time of years that Postgres does not read is one that no payment precedes or follows", () => {
  const all = [at("0000-01-01T00:00:00+14:00"), at("9999-12-31T23:59:59-05:00")] as const;
  const [earliest, latest] = ["1970-01-01T00:00:00.000Z", "9999-12-01T00:00:00.000Z"];
  expect(splitTime(...all)).toEqual({
    edges: [],
    days: { from: earliest, before: latest },
    spans: [{ span: "month", from: "1970-01-01", before: "9999-12-01" }],
  });
  for (const time of all) expect(splitTime(time, time).spans).toEqual([]);
});
