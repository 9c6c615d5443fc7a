import { writeFile } from "node:fs/promises";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { queuePrefix } from "../../../queues/queue-prefix.ts";
import { restoreFault } from "../../faults/database-loss-faults.ts";
import { createRandom } from "../../faults/seeded-random.ts";
import { beginOnEvm, pauseQueue } from "../bed-actions.ts";
import type { RunbookCase } from "../runbook-case.ts";

/** Runbooks about queues, processes and the database. */
export const processCases: readonly RunbookCase[] = [
  {
    runbook: "queue-waits",
    alert: "QueueWaitsTooLong",
    what: "the queue relay-transfers is paused while a payment is accepted",
    async inject(bed) {
      const resume = await pauseQueue(bed, "relay-transfers");
      await beginOnEvm(bed);
      return { end: resume };
    },
  },
  {
    runbook: "sweep",
    alert: "SweepStopped",
    what: "the queue sweep is paused",
    inject: async (bed) => ({ end: await pauseQueue(bed, "sweep") }),
  },
  {
    runbook: "targets-missing",
    alert: "TargetsMissing",
    what: "all workers are stopped",
    async inject({ stack }) {
      const release = await stack.hold(["worker"]);
      return { end: async () => release() };
    },
  },
  {
    runbook: "failed-jobs",
    alert: "FailedJobs",
    what: "a job whose data no handler accepts",
    async inject({ stack }) {
      const connection = new Redis(stack.file().redisUrl, { maxRetriesPerRequest: null });
      const queue = new Queue("settle", { connection, prefix: queuePrefix("pay", "settle") });
      const job = await queue.add("settle", { unknown: true }, { attempts: 1 });
      return {
        async end() {
          await job.remove();
          await queue.close();
          connection.disconnect();
        },
      };
    },
  },
  {
    runbook: "event-loop",
    alert: "EventLoopSlow",
    what: "the worker is stopped for 400 ms twice a second, as by code that blocks",
    async inject({ stack }) {
      const pid = stack.file().processes.workers[0] ?? 0;
      const timer = setInterval(() => {
        process.kill(pid, "SIGSTOP");
        setTimeout(() => process.kill(pid, "SIGCONT"), 400);
      }, 500);
      return { end: async () => clearInterval(timer) };
    },
  },
  {
    runbook: "clock-skew",
    alert: "ClockSkewStopsWork",
    what: "the worker's clock is a minute ahead",
    async inject({ workerClock }) {
      await writeFile(workerClock, "60000");
      return { end: () => writeFile(workerClock, "0") };
    },
  },
  {
    runbook: "database-pool",
    alert: "DatabasePoolSaturated",
    what: "a transaction locks the tables of leases and cursors",
    async inject({ stack }) {
      const client = new pg.Client({ connectionString: stack.file().postgresUrl });
      await client.connect();
      await client.query("begin");
      await client.query("lock table chain_cursor, webhook_endpoint, transfer, payment in access exclusive mode");
      return {
        async end() {
          await client.query("rollback");
          await client.end();
        },
      };
    },
  },
  {
    runbook: "database-lost-commits",
    alert: "DatabaseLostCommits",
    what: "a base backup is restored that is some seconds older than the newest commit",
    brief: "time() - max(pay_database_lost_commits_timestamp_seconds) < 60 or max(pay_chain_reread_pending) > 0",
    async inject(bed) {
      const { postgres } = bed.stack;
      const now = async <T>(work: () => Promise<T>) => work();
      const lost = { from: 0, to: 0 };
      const restoring = restoreFault(postgres, { random: createRandom(1), alone: now, begin: () => lost }).run();
      await beginOnEvm(bed);
      await restoring;
      return {};
    },
  },
];
