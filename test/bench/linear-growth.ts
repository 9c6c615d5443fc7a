/** A straight line through measured points: its slope, and the standard error of the slope. */
export type Growth = { slope: number; error: number };

/** Fits a line by least squares. The error is infinite when there are fewer than three points. */
export function fitGrowth(points: readonly (readonly [x: number, y: number])[]): Growth {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [middleX, middleY] = [mean(points.map(([x]) => x)), mean(points.map(([, y]) => y))];
  const spread = points.reduce((sum, [x]) => sum + (x - middleX) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - middleX) * (y - middleY), 0) / spread;
  if (points.length < 3) return { slope, error: Number.POSITIVE_INFINITY };
  const rest = points.reduce((sum, [x, y]) => sum + (y - middleY - slope * (x - middleX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (points.length - 2) / spread) };
}
