import { drawMinutes, type Line, timesOf } from "./draw-chart.ts";
import { formatValue } from "./format-value.ts";
import { type Box, writeText } from "./svg-text.ts";

const LEFT = 46;
const BELOW = 13;
/** Columns of cells. */
const COLUMNS = 40;

/** Draws the buckets of a histogram over time: the darker a cell, the more observations. The lines' names are upper bounds. */
export function drawHeatmap(lines: readonly Line[], unit: string, box: Box): string {
  const buckets = lines
    .map(({ name, points }) => ({ bound: name === "+Inf" ? Infinity : Number(name), points: new Map(points) }))
    .toSorted((one, other) => one.bound - other.bound);
  const range = timesOf(lines);
  const area = { x: box.x + LEFT, y: box.y + 4, width: box.width - LEFT, height: box.height - BELOW - 4 };
  const [width, height] = [area.width / COLUMNS, area.height / buckets.length];
  const times = Array.from({ length: COLUMNS }, (_, index) =>
    Math.floor(range.from + ((range.to - range.from) * index) / COLUMNS),
  );
  const near = (points: Map<number, number>, at: number) =>
    [...points].reduce<[number, number]>(
      (best, point) => (Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best),
      [-Infinity, 0],
    )[1];
  // A bucket counts everything up to its bound.
  const counts = buckets.map(({ points }, row) =>
    times.map((at) => Math.max(0, near(points, at) - near(buckets[row - 1]?.points ?? new Map(), at))),
  );
  const most = Math.max(...counts.flat()) || 1;
  const cells = counts.flatMap((of, row) =>
    of.map((count, column) => {
      if (count === 0) return "";
      const x = Math.round(area.x + width * column);
      const y = Math.round(area.y + area.height - height * (row + 1));
      return `<rect x="${x}" y="${y}" width="${Math.ceil(width)}" height="${Math.ceil(height)}" fill="#c4162a" opacity="${(0.1 + (0.9 * count) / most).toFixed(2)}"/>`;
    }),
  );
  const bounds = buckets.map(({ bound }, row) => {
    const text = Number.isFinite(bound) ? formatValue(bound, unit) : "more";
    return writeText(area.x - 3, area.y + area.height - height * (row + 0.5) + 3, text, 'class="end"');
  });
  return [...cells, ...bounds, ...drawMinutes(range, area)].join("");
}
