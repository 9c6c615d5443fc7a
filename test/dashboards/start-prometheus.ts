import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { findPrometheus } from "../support/find-prometheus.ts";

/** The addresses of the processes of each role, as Prometheus scrapes them: host and port. */
export type Targets = Readonly<Record<string, readonly string[]>>;
/** One series of an answer: its labels, and times (seconds since 1970) with finite values. */
export type Series = { labels: Record<string, string>; points: [number, number][] };

export type Prometheus = {
  /** Evaluates an expression once a second between two times. Returns only series with finite values. Throws when it is invalid. */
  queryRange(expr: string, range: { from: number; to: number }): Promise<Series[]>;
  close(): Promise<void>;
};

const Answer = z.discriminatedUnion("status", [
  z.object({ status: z.literal("error"), error: z.string() }),
  z.object({
    status: z.literal("success"),
    data: z.object({
      result: z.array(
        z.object({ metric: z.record(z.string(), z.string()), values: z.array(z.tuple([z.number(), z.string()])) }),
      ),
    }),
  }),
]);

const shipped = (name: string) => readFile(new URL(`../../ops/prometheus/${name}`, import.meta.url), "utf8");

/**
 * Starts Prometheus with the shipped rules. It scrapes and evaluates every two seconds, so that a run of some seconds shows on
 * the dashboards.
 */
export async function startPrometheus(targets: Targets): Promise<Prometheus> {
  const program = await findPrometheus();
  const folder = await makeScratch("prometheus");
  const jobs = Object.entries(targets).map(([job, addresses]) => ({
    job_name: job,
    static_configs: [{ targets: addresses }],
  }));
  const config = {
    global: {
      scrape_interval: "2s",
      scrape_timeout: "2s",
      evaluation_interval: "2s",
      external_labels: { board: "http://127.0.0.1:8081" },
    },
    rule_files: ["recordings.yml", "alerts.yml"],
    scrape_configs: jobs,
  };
  await writeFile(join(folder, "prometheus.yml"), JSON.stringify(config));
  for (const name of ["recordings.yml", "alerts.yml"])
    await writeFile(join(folder, name), (await shipped(name)).replaceAll("interval: 30s", "interval: 2s"));
  const address = `127.0.0.1:${await freePort()}`;
  const child = await startChild(program, [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${address}`,
  ]);
  const isReady = async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.ok === true;
  await waitUntil("Prometheus is ready", isReady, { withinMs: 90_000, everyMs: 100 });

  async function queryRange(expr: string, { from, to }: { from: number; to: number }): Promise<Series[]> {
    const body = new URLSearchParams({ query: expr, start: `${from}`, end: `${to}`, step: "1" });
    const answer = Answer.parse(
      await (await fetch(`http://${address}/api/v1/query_range`, { method: "POST", body })).json(),
    );
    if (answer.status === "error") throw new Error(`${answer.error} in ${expr}`);
    return answer.data.result
      .map(({ metric, values }) => ({
        labels: metric,
        points: values
          .map(([at, value]): [number, number] => [at, Number(value)])
          .filter(([, value]) => Number.isFinite(value)),
      }))
      .filter(({ points }) => points.length > 0);
  }
  return {
    queryRange,
    async close() {
      await child.end("SIGTERM", 10_000);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
