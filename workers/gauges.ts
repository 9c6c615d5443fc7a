import type { Queue } from "bullmq";
import type { Gauge } from "prom-client";
import { readOldestDue } from "../db/due.ts";
import { listLanes } from "../db/lanes.ts";
import type { Pool } from "../db/tables.ts";
import { countUnfinished } from "../db/transfers.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { QueueName } from "../queues/catalog.ts";

type Deps = {
  db: Pool & { connections(): { used: number; idle: number; waiting: number } };
  queues: readonly Queue[];
  metrics: Metrics;
  now: () => Date;
};

/** The queue that serves the rows of a table. */
const queueOf: Record<string, QueueName> = {
  payment: "expire-payment",
  attempt: "verify-signature",
  transfer: "relay-permit",
  settlement: "settle",
  chain_cursor: "watch-chain",
};

/** Fills the gauges that describe the whole system, each time they are scraped. What cannot be asked now stays away. */
export function fillGauges({ db, queues, metrics, now }: Deps): void {
  onScrape(metrics.queueJobs, async () => {
    await Promise.all(
      queues.map(async (queue) => {
        const counts = await queue.getJobCounts("waiting", "active", "delayed", "prioritized", "failed");
        for (const [state, count] of Object.entries(counts)) metrics.queueJobs.set({ queue: queue.name, state }, count);
      }),
    );
  });
  onScrape(metrics.queueOldestSeconds, async () => {
    for (const { table, seconds } of await readOldestDue(db, now())) {
      const queue = queueOf[table];
      if (queue) metrics.queueOldestSeconds.set({ queue }, seconds);
    }
  });
  onScrape(metrics.transfers, async () => {
    metrics.transfers.reset();
    for (const { chain, state, count } of await countUnfinished(db)) metrics.transfers.set({ chain, state }, count);
  });
  onScrape(metrics.laneNextNonce, async () => {
    for (const { chain, address, next_nonce } of await listLanes(db))
      metrics.laneNextNonce.set({ chain, lane: address }, next_nonce);
  });
  onScrape(metrics.poolConnections, async () => {
    for (const [state, count] of Object.entries(db.connections())) metrics.poolConnections.set({ state }, count);
  });
}

/** A scrape while Redis or Postgres is away gives the other metrics, not an error. */
function onScrape<T extends string>(gauge: Gauge<T>, collect: () => Promise<void>): void {
  Object.assign(gauge, { collect: () => collect().catch(() => gauge.reset()) });
}
