const scales: readonly [number, string][] = [
  [1e18, "E"],
  [1e15, "P"],
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** Returns a number with at most three significant digits, and with a letter for thousands, millions and so on. */
function shorten(value: number): string {
  const [scale, letter] = scales.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const scaled = value / scale;
  const isTiny = Math.abs(scaled) < 0.001 && scaled !== 0;
  const text = isTiny ? scaled.toExponential(1) : `${Number(scaled.toPrecision(3))}`;
  return `${text}${letter}`;
}

/** Returns a value as the dashboards show it in one of Grafana's units. */
export function formatValue(value: number, unit: string): string {
  if (unit === "percentunit") return `${Number((value * 100).toFixed(2))} %`;
  if (unit === "s" && value !== 0 && Math.abs(value) < 1) return `${shorten(value * 1_000)} ms`;
  if (unit === "s") return `${shorten(value)} s`;
  if (unit === "bytes") return `${shorten(value)}B`;
  if (unit === "Bps") return `${shorten(value)}B/s`;
  if (unit === "ops" || unit === "reqps") return `${shorten(value)}/s`;
  return shorten(value);
}
