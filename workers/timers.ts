import type { Logger } from "pino";
import type { Shutdown } from "../ops/shutdown.ts";
import type { Ring } from "../queues/ring.ts";
import type { Epoch } from "../transfers/epoch.ts";

/** Interval at which each worker process enqueues the sweep, milliseconds. All processes together run one a second. */
const SWEEP_EVERY_MS = 1_000;
/** Interval at which each worker process checks the database's epoch, milliseconds. */
const EPOCH_EVERY_MS = 1_000;

type Deps = { ring: Ring; epoch: Epoch; now: () => Date; log: Logger };

/** Starts the timers of a worker process. They stop when the process shuts down. */
export function startTimers(shutdown: Pick<Shutdown, "onClose">, { ring, epoch, now, log }: Deps): void {
  const sweep = () => ring("sweep", [{ data: { at: Math.floor(now().getTime() / SWEEP_EVERY_MS) } }]);
  const sweeping = setInterval(() => void sweep(), SWEEP_EVERY_MS);
  shutdown.onClose("sweep timer", () => clearInterval(sweeping));
  const check = () => epoch.tick().catch((err: unknown) => log.warn({ err }, "epoch cannot be checked"));
  const checking = setInterval(() => void check(), EPOCH_EVERY_MS);
  shutdown.onClose("epoch timer", () => clearInterval(checking));
}
