import type { Logger } from "pino";
import { exportAuditHeads } from "../payments/maintenance/audit-heads.ts";
import { openHistoryExport } from "../payments/maintenance/export-history.ts";
import { type RetentionDays, removeHistory } from "../payments/maintenance/remove-history.ts";
import type { PaymentDeps } from "../payments/payment-deps.ts";
import type { Enqueue } from "../queues/enqueue.ts";
import type { AuditSink } from "../runtime/audit-sink.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import type { Epoch } from "../transfers/database-epoch.ts";

/** Interval at which each worker process enqueues the sweep, milliseconds. All processes together run one a second (`onceInMs`). */
const SWEEP_EVERY_MS = 1_000;
/** Interval at which each worker process checks the database's epoch, milliseconds. */
const EPOCH_EVERY_MS = 1_000;

/** Interval at which each worker process ends days of the audit log and exports their heads, milliseconds. */
const AUDIT_EVERY_MS = 60_000;

/** Interval at which each worker process that sweeps removes history past its retention, milliseconds. */
const RETENTION_EVERY_MS = 60_000;

type Deps = Pick<PaymentDeps, "db"> & {
  auditSink: AuditSink | undefined;
  enqueue: Enqueue;
  epoch: Epoch;
  now: () => Date;
  log: Logger;
};

/** Starts the timers of a worker process. They stop when the process shuts down. */
export function startTimers(shutdown: Pick<Shutdown, "onClose">, deps: Deps): void {
  const { enqueue, epoch, now, log, auditSink } = deps;
  const sweep = () => enqueue("sweep", [{ data: { at: Math.floor(now().getTime() / SWEEP_EVERY_MS) } }]);
  const sweeping = setInterval(() => void sweep(), SWEEP_EVERY_MS);
  shutdown.onClose("sweep timer", () => clearInterval(sweeping));
  const check = () => epoch.tick().catch((err: unknown) => log.warn({ err }, "epoch cannot be checked"));
  const checking = setInterval(() => void check(), EPOCH_EVERY_MS);
  shutdown.onClose("epoch timer", () => clearInterval(checking));
  const exportHeads = () =>
    exportAuditHeads(deps, auditSink).catch((err: unknown) => log.warn({ err }, "audit heads cannot be exported"));
  const exporting = setInterval(() => void exportHeads(), AUDIT_EVERY_MS);
  shutdown.onClose("audit timer", () => clearInterval(exporting));
  void exportHeads();
}

/**
 * Starts the timer that removes history past its retention. One run of a process follows another, and the processes take
 * turns. It stops when the process shuts down.
 */
export function startRetention(
  shutdown: Pick<Shutdown, "onClose">,
  deps: Pick<PaymentDeps, "db" | "log" | "metrics" | "now">,
  settings: { days: RetentionDays; exportFolder: string | undefined },
): void {
  const { days, exportFolder } = settings;
  const exportHistory = exportFolder === undefined ? undefined : openHistoryExport(exportFolder);
  let running: Promise<void> | undefined;
  const remove = () => {
    running ??= removeHistory(deps, { days, exportHistory })
      .catch((err: unknown) => {
        deps.metrics.retentionFailures.inc();
        deps.log.warn({ err }, "history cannot be removed now");
      })
      .finally(() => {
        running = undefined;
      });
  };
  const timer = setInterval(remove, RETENTION_EVERY_MS);
  shutdown.onClose("retention timer", async () => {
    clearInterval(timer);
    await running;
  });
}
