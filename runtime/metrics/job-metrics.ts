import type { MetricFactory } from "./metric-factory.ts";

/** Returns the metrics of the queues and of the sweep. */
export const createJobMetrics = ({ counter, gauge, histogram, systemGauge }: MetricFactory) => ({
  jobs: counter("pay_jobs_total", "Finished jobs, by queue and outcome", ["queue", "outcome"]),
  jobSeconds: histogram(
    "pay_job_duration_seconds",
    "Time spent in a job handler",
    ["queue", "outcome"],
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  jobWaitSeconds: histogram(
    "pay_job_wait_seconds",
    "Time between a job's due time and its start",
    ["queue"],
    [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60],
  ),
  stalledJobs: counter("pay_stalled_jobs_total", "Jobs whose worker died or hung, and that another worker runs again", [
    "queue",
  ]),
  queueJobs: systemGauge("pay_queue_jobs", "Jobs in a queue, by state", ["queue", "state"]),
  queueOldestSeconds: systemGauge(
    "pay_queue_oldest_job_age_seconds",
    "Age of the oldest due row in Postgres that no job has handled yet, by queue",
    ["queue"],
  ),
  sweepReenqueued: counter("pay_sweep_reenqueued_total", "Rows whose job was lost and that the sweep enqueued again", [
    "queue",
  ]),
  sweepLastRun: gauge(
    "pay_sweep_last_run_timestamp_seconds",
    "Time of the last sweep of this process that succeeded; its start time before the first one, and 0 where it serves no sweep",
  ),
  enqueueFailures: counter(
    "pay_enqueue_failures_total",
    "Jobs that could not be added to a queue (the sweep enqueues them later)",
    ["queue"],
  ),
});
