import { formatValue } from "./format-value.ts";
import { type Box, shortenTo, writeText } from "./svg-text.ts";

/** A line of a chart: a name and values over time (seconds since 1970). */
export type Line = { name: string; points: readonly [number, number][] };

const colors = ["#3274d9", "#37872d", "#e0752d", "#8f3bb8", "#c4162a", "#0a7e8c", "#967302", "#555"];
/** Most lines that are drawn, most lines of the legend, and most points of a line. */
const MOST_LINES = 8;
const MOST_NAMES = 4;
const MOST_POINTS = 60;
/** Space for the numbers beside and below a chart, and height of a line of the legend, pixels. */
const LEFT = 46;
const BELOW = 13;
const NAME = 11;

/**
 * Draws values over time: axes with units and minutes, the lines with the highest last values, and a legend with these values.
 * @param axis.min where the axis begins; near the lowest value when unset
 */
export function drawChart(
  lines: readonly Line[],
  { unit, min }: { unit: string; min: number | undefined },
  box: Box,
): string {
  const drawn = lines
    .toSorted((one, other) => lastOf(other) - lastOf(one) || peakOf(other) - peakOf(one))
    .slice(0, MOST_LINES);
  const legend = Math.min(lines.length, MOST_NAMES + 1) * NAME;
  const area = { x: box.x + LEFT, y: box.y + 4, width: box.width - LEFT, height: box.height - legend - BELOW - 6 };
  const values = drawn.flatMap(({ points }) => points.map(([, value]) => value));
  const range = { ...timesOf(lines), ...roundAxis(Math.min(...values, min ?? Infinity), Math.max(...values)) };
  const paths = drawn.map(
    ({ points }, index) => `<path d="${tracePath(points, range, area)}" class="line" stroke="${colors[index]}"/>`,
  );
  return [
    ...drawAxes(range, unit, area),
    ...paths,
    ...drawLegend(drawn, lines.length, unit, { ...box, y: box.y + box.height - legend, height: legend }),
  ].join("");
}

/** Draws the course of one line without axes, as below the number of a panel. */
export function drawCourse({ points }: Line, area: Box): string {
  const values = points.map(([, value]) => value);
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  if (high === low) return "";
  const range = { ...timesOf([{ points }]), low, high };
  return `<path d="${tracePath(points, range, area)}" class="line" stroke="#9ac794"/>`;
}

/** Returns ends of an axis, with its middle, that are round numbers. */
function roundAxis(low: number, high: number): { low: number; high: number } {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / 2));
  const step = [1, 2, 2.5, 5, 10]
    .map((digit) => digit * power)
    .find((size) => {
      const from = Math.floor(low / size) * size;
      return from + 2 * size >= high;
    });
  const size = step ?? 20 * power;
  const from = Math.floor(low / size) * size;
  return { low: from, high: Math.max(high, from + 2 * size) };
}

type Range = { from: number; to: number; low: number; high: number };

/** Returns the first and the last time of some lines. */
export function timesOf(lines: readonly Pick<Line, "points">[]): { from: number; to: number } {
  const times = lines.flatMap(({ points }) => points.map(([at]) => at));
  return { from: Math.min(...times), to: Math.max(...times) };
}

/** Draws the minutes since the beginning below a chart. */
export function drawMinutes({ from, to }: { from: number; to: number }, area: Box): string[] {
  const minutes = Math.floor((to - from) / 60);
  return Array.from({ length: minutes + 1 }, (_, minute) => {
    const x = area.x + (area.width * minute * 60) / (to - from || 1);
    const text = minute === minutes ? `${minute} min` : `${minute}`;
    return writeText(Math.min(x, area.x + area.width - 12), area.y + area.height + 10, text, 'class="tick"');
  });
}

function drawAxes(range: Range, unit: string, area: Box): string[] {
  const { x, y, width, height } = area;
  const ticks = [range.high, (range.high + range.low) / 2, range.low].map((value, index) => {
    const at = Math.round(y + (height * index) / 2);
    const line = `<path d="M${x} ${at}h${width}" class="${index === 2 ? "axis" : "grid"}"/>`;
    return line + writeText(x - 3, at + 3, formatValue(value, unit), 'class="end"');
  });
  return [...ticks, ...drawMinutes(range, area)];
}

function drawLegend(drawn: readonly Line[], count: number, unit: string, box: Box): string[] {
  const names = drawn.slice(0, MOST_NAMES).map(({ name, points }, index) => {
    const value = formatValue(points.at(-1)?.[1] ?? 0, unit);
    const text = name === "" ? value : `${shortenTo(name, box.width / 5 - value.length - 2)}: ${value}`;
    return writeText(box.x, box.y + 9 + NAME * index, text, `style="fill:${colors[index]}"`);
  });
  const rest = count - MOST_NAMES;
  if (rest > 0) names.push(writeText(box.x, box.y + 9 + NAME * MOST_NAMES, `and ${rest} more`));
  return names;
}

const lastOf = ({ points }: Line): number => points.at(-1)?.[1] ?? 0;
const peakOf = ({ points }: Line): number => Math.max(...points.map(([, value]) => value));

/** Returns the path through some points: the first one absolute, the others relative to the one before, which is shorter. */
function tracePath(points: readonly [number, number][], range: Range, area: Box): string {
  const corners = thin(points).map(([at, value]): [number, number] => [
    Math.round(area.x + (area.width * (at - range.from)) / (range.to - range.from || 1)),
    Math.round(area.y + (area.height * (range.high - value)) / (range.high - range.low)),
  ]);
  const [first, ...others] = corners;
  if (!first) return "";
  if (others.length === 0) return `M${first.join(" ")}h4`;
  const steps = others.map(([x, y], index) => {
    const [beforeX = 0, beforeY = 0] = corners[index] ?? [];
    return `${x - beforeX} ${y - beforeY}`;
  });
  return `M${first.join(" ")}l${steps.join(" ").replaceAll(" -", "-")}`;
}

/** Leaves out points: of those that lie together the highest one stays, so that a peak is seen. */
function thin(points: readonly [number, number][]): [number, number][] {
  const size = Math.ceil(points.length / MOST_POINTS);
  return Array.from({ length: Math.ceil(points.length / (size || 1)) }, (_, index) =>
    points.slice(index * size, (index + 1) * size).reduce((one, other) => (other[1] > one[1] ? other : one)),
  );
}
