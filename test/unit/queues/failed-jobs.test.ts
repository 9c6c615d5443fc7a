import { expect, test } from "vitest";
import { type FailedJob, listSuperseded } from "../../../queues/failed-jobs.ts";

const now = new Date("2026-11-23T12:00:00Z");
const job = (id: string, minutes: number, more: Partial<FailedJob>): FailedJob => ({
  id,
  failedAt: new Date(now.getTime() - minutes * 60_000),
  rows: [],
  topic: undefined,
  ...more,
});

test("of several failed jobs for the same row, the newest stays while the row waits, and none afterwards", () => {
  const jobs = [
    job("new", 1, { rows: ["stl_1"] }),
    job("old", 2, { rows: ["stl_1"] }),
    job("older", 3, { rows: ["stl_1"] }),
  ];
  expect(listSuperseded(jobs, new Set(["stl_1"]), now)).toEqual(["old", "older"]);
  expect(listSuperseded(jobs, new Set(), now)).toEqual(["new", "old", "older"]);
});

test("a job for several rows stays until each of them is done or has a newer failed job of its own", () => {
  const batch = job("batch", 9, { rows: ["att_1", "att_2"] });
  const first = job("first", 1, { rows: ["att_1"] });
  const second = job("second", 2, { rows: ["att_2"] });
  const open = new Set(["att_1", "att_2"]);
  expect(listSuperseded([first, batch], open, now)).toEqual([]);
  expect(listSuperseded([first, second, batch], open, now)).toEqual(["batch"]);
  expect(listSuperseded([first, batch], new Set(["att_1"]), now)).toEqual(["batch"]);
});

test("of repeated work, the newest failed job of each topic stays for 15 minutes", () => {
  const jobs = [
    job("a2", 1, { topic: "chain a" }),
    job("a1", 2, { topic: "chain a" }),
    job("b", 16, { topic: "chain b" }),
  ];
  expect(listSuperseded(jobs, new Set(), now)).toEqual(["a1", "b"]);
});

test("a job whose data names no work stays", () => {
  expect(listSuperseded([job("unreadable", 999, {})], new Set(), now)).toEqual([]);
});
