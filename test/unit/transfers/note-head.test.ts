import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createMetrics } from "../../../runtime/metrics.ts";
import { noteHead } from "../../../transfers/note-head.ts";

test("a head that stands still counts as read each time that a watcher reads it", async () => {
  const metrics = createMetrics(new Registry(), "worker");
  const noteAt = async (at: string) => {
    noteHead({ metrics, now: () => new Date(at) }, "eip155:1", 7);
    const gauges = [metrics.headBlock, metrics.headReadAt];
    return Promise.all(gauges.map(async (gauge) => (await gauge.get()).values.map(({ value }) => value)));
  };
  expect(await noteAt("2026-01-01T00:00:00Z")).toEqual([[7], [Date.UTC(2026, 0, 1) / 1_000]]);
  expect(await noteAt("2026-01-01T00:01:00Z")).toEqual([[7], [Date.UTC(2026, 0, 1) / 1_000 + 60]]);
});
