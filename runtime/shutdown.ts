import type { Log } from "./log.ts";
import { withTimeout } from "./timeout.ts";

export type Shutdown = {
  /** Aborted when closing starts: long waits end and no new work begins. */
  readonly signal: AbortSignal;
  /** Registers how to close a resource. Resources are closed in reverse order, each within its own time limit. */
  onClose(name: string, close: () => unknown, bound?: { timeoutMs: number }): void;
  /** Closes everything once; later calls wait for the first. Never rejects. */
  close(): Promise<void>;
};

type Resource = { name: string; close: () => unknown; timeoutMs: number };

/** Creates the shutdown of a process. A `main.ts` registers each resource on the line after it opens it. */
export function createShutdown(deps: { log: Log; timeoutMs?: number }): Shutdown {
  const stop = new AbortController();
  const resources: Resource[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    stop.abort();
    for (let last = resources.pop(); last !== undefined; last = resources.pop()) await closeResource(deps.log, last);
  }
  return {
    signal: stop.signal,
    onClose(name, close, bound = { timeoutMs: deps.timeoutMs ?? 10_000 }) {
      resources.push({ name, close, ...bound });
    },
    close() {
      closing ??= closeAll();
      return closing;
    },
  };
}

/** Closes a resource. One that fails or takes too long is logged and skipped, so that the others are closed too. */
async function closeResource(log: Log, { name, close, timeoutMs }: Resource): Promise<void> {
  const late = new Error("late");
  try {
    await withTimeout(Promise.try(close), timeoutMs, () => late);
  } catch (err) {
    if (err === late) log.error({ resource: name, timeoutMs }, "resource did not close in time and is skipped");
    else log.error({ err, resource: name }, "resource failed to close");
  }
}

/**
 * Installs the signal handlers. SIGTERM and SIGINT close everything and end the process with code 0; a second signal ends it
 * at once. An uncaught exception or unhandled rejection leaves unknown state in memory: the process closes and ends with
 * code 1.
 * @param deps.lingerMs how long the process may live after everything is closed, if something still holds it open
 */
export function installSignals(shutdown: Shutdown, deps: { log: Log; lingerMs?: number }): void {
  const { log, lingerMs = 2_000 } = deps;
  async function end(code: number): Promise<void> {
    await shutdown.close();
    log.info({ code }, "closed");
    // A crash while closing has set 1 already, and that stays.
    process.exitCode = Math.max(Number(process.exitCode ?? 0), code);
    setTimeout(() => {
      try {
        log.warn({ resources: process.getActiveResourcesInfo() }, "everything is closed but the process is held open");
      } finally {
        // Writing fails when the reader of our output is gone; the process must still exit.
        process.exit();
      }
    }, lingerMs).unref();
  }
  let isClosing = false;
  function onSignal(name: NodeJS.Signals): void {
    if (isClosing) {
      log.warn({ signal: name }, "second signal, exiting at once");
      process.exit(1);
    }
    isClosing = true;
    log.info({ signal: name }, "closing");
    void end(0);
  }
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, onSignal);
  for (const name of ["uncaughtException", "unhandledRejection"] as const)
    process.on(name, (err: unknown) => {
      log.fatal({ err, event: name }, "process cannot continue");
      void end(1);
    });
}
