import { readdirSync, readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { createMetrics } from "../../../../runtime/metrics.ts";

type Target = { expr: string; refId: string };
type Grid = { x: number; y: number; w: number; h: number };
type Panel = {
  id: number;
  type: string;
  title: string;
  gridPos: Grid;
  targets?: Target[];
  description?: string;
  links?: { url: string }[];
  datasource?: { uid: string };
};
type Dashboard = { uid: string; title: string; panels: Panel[]; templating: { list: { name: string }[] } };

const folder = new URL("../../../../ops/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, folder), "utf8");
const dashboards = readdirSync(new URL("grafana/dashboards/", folder)).map((file) => ({
  file,
  board: JSON.parse(read(`grafana/dashboards/${file}`)) as Dashboard,
}));
const rules = ["prometheus/recordings.yml", "prometheus/alerts.yml"].map((file) => ({ file, text: read(file) }));

/** Returns every series that a scrape can hold; a histogram consists of three series. */
async function knownSeries(): Promise<Set<string>> {
  const registry = new Registry();
  createMetrics(registry, "api");
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === "histogram" ? ["_bucket", "_sum", "_count"].map((end) => name + end) : [name],
    ),
  );
}

/** Returns the metric names of the service and of Node in an expression, without functions, labels and recorded series. */
const seriesIn = (text: string): string[] => text.match(/(?<![\w:])(?:pay|nodejs|process)_[a-z0-9_]+/g) ?? [];
const recordsIn = (text: string): string[] => text.match(/(?<!\w)pay:[a-zA-Z0-9_:]+/g) ?? [];
const recorded = new Set(rules.flatMap(({ text }) => [...text.matchAll(/record: (\S+)/g)].map((match) => match[1])));

describe.each(dashboards)("dashboard $file", ({ board }) => {
  const panels = board.panels.filter(({ type }) => type !== "row");

  test("every panel has a unique id, and every query has a unique id within its panel", () => {
    const ids = board.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { title, targets = [] } of panels) {
      expect(targets.length, title).toBeGreaterThan(0);
      expect(new Set(targets.map(({ refId }) => refId)).size, title).toBe(targets.length);
    }
  });

  test("no panel overlaps another panel or exceeds the grid", () => {
    const overlap = (a: Grid, b: Grid) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    for (const [index, { gridPos, title }] of board.panels.entries()) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      const on = board.panels.slice(index + 1).filter((other) => overlap(gridPos, other.gridPos));
      expect(on.map((other) => `${title} / ${other.title}`)).toEqual([]);
    }
  });

  // Grafana cuts longer ones on a screen of 1,600 pixels.
  test("every title has at most eight characters for each column of its panel", () => {
    expect(panels.filter(({ title, gridPos }) => title.length > 8 * gridPos.w).map(({ title }) => title)).toEqual([]);
  });

  test("every query uses only series that exist", async () => {
    const known = await knownSeries();
    const exprs = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(exprs.flatMap(seriesIn).filter((name) => !known.has(name))).toEqual([]);
    expect(exprs.flatMap(recordsIn).filter((name) => !recorded.has(name))).toEqual([]);
    for (const expr of exprs) expect(expr).toMatch(/pay[_:]|nodejs_|process_|\bup\b|ALERTS|pg_|redis_/);
  });

  test("every variable in a query is declared, and every data source is the provisioned one", () => {
    const declared = new Set(["__rate_interval", ...board.templating.list.map(({ name }) => name)]);
    const used = panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => expr.match(/(?<=\$)\w+/g) ?? []));
    expect(used.filter((name) => !declared.has(name))).toEqual([]);
    const provisioned = /uid: (\S+)/.exec(read("grafana/provisioning/datasources/prometheus.yml"))?.[1];
    expect(new Set(panels.map(({ datasource }) => datasource?.uid))).toEqual(new Set([provisioned]));
  });

  test("every panel links to the runbooks that its description names, and they exist", () => {
    const pages = new Set(readdirSync(new URL("runbooks/", folder)));
    for (const { title, description = "", links = [] } of panels) {
      const named = /Runbooks?: ([a-z-]+(?:, [a-z-]+)*)/.exec(description)?.[1]?.split(", ") ?? [];
      expect(named.filter((name) => !pages.has(`${name}.md`))).toEqual([]);
      expect(
        links.map(({ url }) => url),
        title,
      ).toEqual(named.map((name) => `\${board}/runbooks/${name}`));
    }
  });
});

test("every dashboard has a unique title and uid", () => {
  expect(dashboards.length).toBe(7);
  expect(new Set(dashboards.map(({ board }) => board.uid)).size).toBe(dashboards.length);
  expect(new Set(dashboards.map(({ board }) => board.title)).size).toBe(dashboards.length);
});

test("every gauge of the signer, and the destination changes that wait, are on a dashboard", async () => {
  const shown = new Set(dashboards.flatMap(({ board }) => seriesIn(JSON.stringify(board))));
  const registry = new Registry();
  createMetrics(registry, "signer");
  const gauges = (await registry.getMetricsAsJSON()).filter(({ type }) => String(type) === "gauge");
  const named = gauges.map(({ name }) => name).filter((name) => name.startsWith("pay_signer_"));
  expect(named.length).toBeGreaterThan(4);
  expect([...named, "pay_destination_changes_waiting"].filter((name) => !shown.has(name))).toEqual([]);
});

test.each(rules)("$file uses only series that exist", async ({ text }) => {
  const known = await knownSeries();
  const series = seriesIn(text);
  expect(series.length).toBeGreaterThan(0);
  expect(series.filter((name) => !known.has(name))).toEqual([]);
  expect(recordsIn(text).filter((name) => !recorded.has(name))).toEqual([]);
});

test("every alert has a severity and a runbook that describes it, and every runbook has an alert", () => {
  const alerts = (rules[1]?.text ?? "").split("- alert: ").slice(1);
  const pages = new Set<string>();
  for (const text of alerts) {
    const name = /^\w+/.exec(text)?.[0] ?? "";
    expect(/severity: (\w+)/.exec(text)?.[1], name).toMatch(/^(page|ticket|none)$/);
    const page = /runbook_url: .*\/(runbooks\/[a-z-]+)"$/m.exec(text)?.[1];
    expect(page, name).toBeDefined();
    expect(read(`${page}.md`), `${page} speaks of ${name}`).toContain(name);
    pages.add(page ?? "");
  }
  expect(alerts.length).toBeGreaterThan(20);
  const written = readdirSync(new URL("runbooks/", folder)).map((file) => `runbooks/${file.replace(/\.md$/, "")}`);
  expect(new Set(written)).toEqual(pages);
});
