import { drawChart, drawCourse, type Line } from "./draw-chart.ts";
import { drawHeatmap } from "./draw-heatmap.ts";
import { formatValue } from "./format-value.ts";
import type { Panel } from "./read-dashboards.ts";
import { findReason } from "./silent-queries.ts";
import type { Series } from "./start-prometheus.ts";
import { type Box, shortenTo, wrap, writeText } from "./svg-text.ts";

/** Draws a panel into a box: its title, and its last value or its values over time. Returns SVG elements. */
export function drawPanel(panel: Panel, answers: readonly Series[][], box: Box): string {
  const { x, y, width, height } = box;
  const frame = `<rect x="${x}" y="${y}" width="${width}" height="${height}" class="panel"/>`;
  const title = wrap(panel.title, (width - 12) / 6);
  const texts = title.map((line, index) => writeText(x + 6, y + 14 + 12 * index, line, 'class="title"'));
  const top = 10 + 12 * title.length;
  const inside = { x: x + 6, y: y + top, width: width - 12, height: height - top - 6 };
  return frame + texts.join("") + drawContent(panel, listLines(panel, answers), inside);
}

function drawContent(panel: Panel, lines: readonly Line[], box: Box): string {
  const unit = panel.fieldConfig?.defaults.unit ?? "short";
  const middle = box.x + box.width / 2;
  const [first] = lines;
  if (!first)
    return wrap(`no data: ${findReason(panel.title) ?? "nothing has happened"}`, box.width / 6)
      .map((line, index) => writeText(middle, box.y + box.height / 2 + 12 * index, line, 'class="none"'))
      .join("");
  if (panel.type === "stat") {
    const value = formatValue(first.points.at(-1)?.[1] ?? 0, unit);
    const course = drawCourse(first, { ...box, y: box.y + box.height - 14, height: 14 });
    return course + writeText(middle, box.y + 20, value, 'class="stat"');
  }
  if (panel.type === "heatmap") return drawHeatmap(lines, unit, box);
  if (panel.type === "table")
    return lines
      .map(({ name }, row) => writeText(box.x, box.y + 12 + 12 * row, shortenTo(name, box.width / 5)))
      .join("");
  return drawChart(lines, { unit, min: panel.fieldConfig?.defaults.min }, box);
}

function listLines(panel: Panel, answers: readonly Series[][]): Line[] {
  return answers.flatMap((series, index) =>
    series.map(({ labels, points }) => ({ name: nameOf(panel.targets[index]?.legendFormat ?? "", labels), points })),
  );
}

/** Returns the name of a series as Grafana makes it from its labels. */
function nameOf(format: string, labels: Record<string, string>): string {
  const { __name__: _, ...long } = labels;
  const own = Object.fromEntries(Object.entries(long).map(([label, value]) => [label, shortenIds(value)]));
  if (format !== "__auto") return format.replaceAll(/\{\{(\w+)\}\}/g, (_whole, label: string) => own[label] ?? "");
  return Object.entries(own)
    .map(([label, value]) => `${label} ${value}`)
    .join(", ");
}

/** Shortens addresses, and the hashes in the names of Solana's chains: long words with a digit. */
const shortenIds = (text: string): string => text.replaceAll(/(\w{6})(?=\w*\d)\w{20,}/g, "$1…");
