/** One sample of a scrape. */
export type Sample = { name: string; labels: Record<string, string>; value: number };

/** Reads the samples at a process's /metrics. */
export async function scrape(metricsUrl: string): Promise<Sample[]> {
  const text = await (await fetch(metricsUrl)).text();
  return text.split("\n").flatMap((line) => {
    const found = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!found) return [];
    const labels = [...(found[2] ?? "").matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]);
    return [{ name: found[1] ?? "", labels: Object.fromEntries(labels), value: Number(found[3]) }];
  });
}

/** Returns the sum of a metric's samples with these labels, or undefined if there is none. */
export function sumOf(
  samples: readonly Sample[],
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const found = samples.filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  );
  return found.length === 0 ? undefined : found.reduce((sum, sample) => sum + sample.value, 0);
}
