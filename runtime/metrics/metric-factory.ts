import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Makes metrics on one registry. */
export type MetricFactory = ReturnType<typeof createMetricFactory>;

/** Returns the constructors that the files of this folder make their metrics with. */
export function createMetricFactory(registry: Registry) {
  const registers = [registry];
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name, help, labelNames: [...labelNames], registers });
  return {
    gauge,
    counter: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      new Counter({ name, help, labelNames: [...labelNames], registers }),
    histogram: <L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]) =>
      new Histogram({ name, help, labelNames: [...labelNames], buckets, registers }),
    /** A gauge whose values are read at each scrape. */
    sampledGauge: <L extends string>(name: string, help: string, labelNames: readonly L[]) => {
      const samples: { labels: Record<L, string>; read: () => number }[] = [];
      const collect = () => {
        for (const { labels, read } of samples) sampled.set(labels, read());
      };
      const sampled = new Gauge({ name, help, labelNames: [...labelNames], registers, collect });
      return { sample: (labels: Record<L, string>, read: () => number) => void samples.push({ labels, read }) };
    },
    /** A gauge that describes the whole system: every worker exports the same value. */
    systemGauge: <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
      gauge(name, `${help} (system-wide: aggregate with max by)`, labelNames),
  };
}
