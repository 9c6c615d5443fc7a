import { rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { makeScratch } from "../../local/scratch-folder.ts";
import { drawDashboard } from "../dashboards/draw-dashboard.ts";
import { type FilledDashboard, fillDashboards } from "../dashboards/run-dashboards.ts";
import { silentQueries } from "../dashboards/silent-queries.ts";
import { addCleanup } from "../support/cleanups.ts";

/** Returns every query of every panel, by panel and by what its series are called, and whether it has data. */
function listQueries(dashboards: readonly FilledDashboard[]): { name: string; hasData: boolean }[] {
  return dashboards.flatMap(({ answers }) =>
    [...answers].flatMap(([{ title, targets }, series]) =>
      targets.map(({ legendFormat }, index) => ({
        name: `${title}: ${legendFormat}`,
        hasData: (series[index] ?? []).length > 0,
      })),
    ),
  );
}

test("every query of the dashboards has data after a mixed load, but for those that are listed with a reason", async () => {
  const dir = await makeScratch("dashboard-queries");
  addCleanup(() => rm(dir, { recursive: true, force: true }));
  const isComplete = (filled: readonly FilledDashboard[]) =>
    listQueries(filled).every(({ name, hasData }) => hasData || name in silentQueries);
  const dashboards = await fillDashboards({ dir, seconds: 6, isComplete, say: () => undefined });
  const queries = listQueries(dashboards);
  expect(queries.length).toBeGreaterThan(150);
  expect(
    queries
      .filter(({ hasData }) => !hasData)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(Object.keys(silentQueries).sort());
  for (const dashboard of dashboards) {
    const picture = drawDashboard(dashboard);
    expect(picture.length, dashboard.title).toBeLessThan(60_000);
    for (const { title } of dashboard.panels) expect(picture).toContain(title.slice(0, 8).replace("<", "&lt;"));
  }
});
