import type { Logger } from "pino";
import type { Enqueue } from "../queues/enqueue.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import type { Epoch } from "../transfers/database-epoch.ts";

/** Interval at which each worker process enqueues the sweep, milliseconds. All processes together run one a second. */
const SWEEP_EVERY_MS = 1_000;
/** Interval at which each worker process checks the database's epoch, milliseconds. */
const EPOCH_EVERY_MS = 1_000;

type Deps = { enqueue: Enqueue; epoch: Epoch; now: () => Date; log: Logger };

/** Starts the timers of a worker process. They stop when the process shuts down. */
export function startTimers(shutdown: Pick<Shutdown, "onClose">, { enqueue, epoch, now, log }: Deps): void {
  const sweep = () => enqueue("sweep", [{ data: { at: Math.floor(now().getTime() / SWEEP_EVERY_MS) } }]);
  const sweeping = setInterval(() => void sweep(), SWEEP_EVERY_MS);
  shutdown.onClose("sweep timer", () => clearInterval(sweeping));
  const check = () => epoch.tick().catch((err: unknown) => log.warn({ err }, "epoch cannot be checked"));
  const checking = setInterval(() => void check(), EPOCH_EVERY_MS);
  shutdown.onClose("epoch timer", () => clearInterval(checking));
}
