import { formatValue } from "./format-value.ts";
import type { Panel } from "./read-dashboards.ts";
import type { Series } from "./start-prometheus.ts";

/** A line of a chart: a name and values over time (seconds since 1970). */
type Line = { name: string; points: readonly [number, number][] };
type Box = { x: number; y: number; width: number; height: number };

const colors = ["#3274d9", "#37872d", "#e0752d", "#8f3bb8", "#c4162a", "#0a7e8c", "#967302", "#555"];
/** Most lines that are drawn; a line more in the legend says how many there are. */
const MOST_LINES = 8;
/** Most lines of the legend. */
const MOST_NAMES = 3;

export const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const writeText = (x: number, y: number, text: string, attributes = ""): string =>
  `<text x="${x}" y="${y}"${attributes === "" ? "" : ` ${attributes}`}>${escapeXml(text)}</text>`;

/** Draws a panel into a box: its title, and its last value or its values over time. Returns SVG elements. */
export function drawPanel(panel: Panel, answers: readonly Series[][], box: Box): string {
  const { x, y, width, height } = box;
  const frame = `<rect x="${x}" y="${y}" width="${width}" height="${height}" class="panel"/>`;
  const title = wrap(panel.title, (width - 12) / 6)
    .map((line, index) => writeText(x + 6, y + 14 + 12 * index, line, 'class="title"'))
    .join("");
  const lines = listLines(panel, answers);
  const inside = { x: x + 6, y: y + 30, width: width - 12, height: height - 36 };
  return frame + title + drawContent(panel, lines, inside);
}

function drawContent(panel: Panel, lines: readonly Line[], box: Box): string {
  const unit = panel.fieldConfig?.defaults.unit ?? "short";
  if (lines.length === 0) return writeText(box.x + box.width / 2, box.y + box.height / 2, "no data", 'class="none"');
  if (panel.type === "stat") {
    const last = lines[0]?.points.at(-1)?.[1] ?? 0;
    return writeText(box.x + box.width / 2, box.y + box.height / 2 + 8, formatValue(last, unit), 'class="stat"');
  }
  if (panel.type === "table")
    return lines
      .map(({ name }, row) => writeText(box.x, box.y + 12 + 12 * row, shortenTo(name, box.width / 5)))
      .join("");
  return drawChart(lines, unit, box);
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

/** Shortens addresses, and the hashes in the names of Solana's chains. */
const shortenIds = (text: string): string => text.replaceAll(/(\w{6})\w{20,}/g, "$1…");

/** Breaks a text into at most two lines. */
function wrap(text: string, most: number): string[] {
  if (text.length <= most) return [text];
  const at = text.lastIndexOf(" ", most);
  return at === -1 ? [shortenTo(text, most)] : [text.slice(0, at), shortenTo(text.slice(at + 1), most)];
}

function drawChart(lines: readonly Line[], unit: string, box: Box): string {
  const busiest = lines.toSorted((one, other) => lastOf(other) - lastOf(one)).slice(0, MOST_LINES);
  const all = busiest.flatMap(({ points }) => points);
  const times = all.map(([at]) => at);
  const values = all.map(([, value]) => value);
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const legend = Math.min(lines.length, MOST_NAMES + 1) * 11;
  const chart = { x: box.x + 38, y: box.y + 4, width: box.width - 38, height: box.height - legend - 8 };
  const toX = (at: number) => Math.round(chart.x + (chart.width * (at - from)) / (to - from || 1));
  const toY = (value: number) =>
    Math.round(chart.y + chart.height - (chart.height * (value - low)) / (high - low || 1));
  const axis = `<path d="M${chart.x} ${chart.y}V${chart.y + chart.height}M${chart.x} ${toY(0)}H${chart.x + chart.width}" class="axis"/>`;
  const ends = [high, low]
    .filter((value, index) => index === 0 || value !== high)
    .map((value) => writeText(chart.x - 3, toY(value) + 4, formatValue(value, unit), 'class="end"'));
  const drawn = busiest.map(({ points }, index) => {
    const corners = thin(points).map(([at, value]) => `${toX(at)} ${toY(value)}`);
    return `<path d="M${corners.join("L")}${corners.length === 1 ? "h4" : ""}" class="line" stroke="${colors[index]}"/>`;
  });
  const names = busiest.slice(0, MOST_NAMES).map(({ name, points }, index) => {
    const text = `${name}: ${formatValue(points.at(-1)?.[1] ?? 0, unit)}`;
    return writeText(
      box.x,
      box.y + box.height - legend + 10 + 11 * index,
      shortenTo(text, box.width / 5),
      `style="fill:${colors[index]}"`,
    );
  });
  const rest = lines.length - MOST_NAMES;
  if (rest > 0) names.push(writeText(box.x, box.y + box.height - legend + 10 + 11 * MOST_NAMES, `and ${rest} more`));
  return axis + ends.join("") + drawn.join("") + names.join("");
}

const lastOf = ({ points }: Line): number => points.at(-1)?.[1] ?? 0;

/** Leaves out points, so that at most 40 are left, the last one among them. */
function thin(points: readonly [number, number][]): readonly [number, number][] {
  const every = Math.ceil(points.length / 40);
  return points.filter((_, index) => (points.length - 1 - index) % every === 0);
}

function shortenTo(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, Math.floor(most) - 1))}…`;
}
