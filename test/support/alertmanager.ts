import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { postJson } from "../../local/post-json.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { addCleanup } from "./cleanups.ts";
import { findAlertmanager } from "./find-alertmanager.ts";
import { listen } from "./listen.ts";
import { waitFor } from "./wait-for.ts";

/** An alert as Prometheus sends it; with `endsAt` in the past it is resolved. */
export type PostedAlert = {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  endsAt?: string;
};
/** An alert in a notification that a receiver got. `path` is that of the receiver. */
type Delivered = PostedAlert & { path: string; status: "firing" | "resolved" };

/**
 * Starts Alertmanager with the shipped example of routes. Only two things are changed: the receivers are a server of this
 * test, and what takes seconds to minutes takes a fraction of a second.
 */
export async function startAlertmanager() {
  const delivered: Delivered[] = [];
  const receiver = await listen(
    createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      const { alerts } = JSON.parse(body) as { alerts: Delivered[] };
      delivered.push(...alerts.map((alert) => ({ ...alert, path: request.url ?? "" })));
      response.end();
    }),
  );
  const shipped = await readFile(new URL("../../ops/alertmanager/alertmanager.yml", import.meta.url), "utf8");
  const config = shipped
    .replaceAll("http://127.0.0.1:9/", `${receiver}/`)
    .replaceAll(/group_wait: \w+/g, "group_wait: 200ms")
    .replaceAll(/group_interval: \w+/g, "group_interval: 300ms");
  const folder = await makeScratch("alertmanager");
  await writeFile(join(folder, "alertmanager.yml"), config);
  const address = `127.0.0.1:${await freePort()}`;
  const program = findAlertmanager();
  if (program === undefined)
    throw new Error("Alertmanager was not found: install prometheus-alertmanager, or set ALERTMANAGER");
  const child = await startChild(program, [
    `--config.file=${folder}/alertmanager.yml`,
    `--storage.path=${folder}/data`,
    `--web.listen-address=${address}`,
    "--cluster.listen-address=",
  ]);
  addCleanup(() => child.end("SIGTERM", 5_000));
  const isReady = async () => (await fetch(`http://${address}/-/ready`)).ok;
  await waitFor(isReady, { within: 20_000, what: "Alertmanager is ready" });
  return {
    delivered,
    post: (alerts: readonly PostedAlert[]) => postJson(`http://${address}/api/v2/alerts`, JSON.stringify(alerts)),
  };
}
