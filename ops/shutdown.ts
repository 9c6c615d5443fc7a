import type { Log } from "./log.ts";

export type Shutdown = {
  /** Aborted when closing starts: long waits give up, nothing new is begun. */
  readonly signal: AbortSignal;
  /** Says how to close what was just opened. Closed in reverse order, each within its own bound. */
  onClose(name: string, close: () => unknown, bound?: { boundMs: number }): void;
  /** Closes everything once; later calls wait for the first. Never rejects. */
  close(): Promise<void>;
};

/** What a `main.ts` opens it hands over here, one line after opening it. */
export function createShutdown(deps: { log: Log; boundMs?: number }): Shutdown {
  const stop = new AbortController();
  const releasers: { name: string; close: () => unknown; boundMs: number }[] = [];
  let closing: Promise<void> | undefined;

  async function closeAll(): Promise<void> {
    stop.abort();
    for (let last = releasers.pop(); last !== undefined; last = releasers.pop()) await release(deps.log, last);
  }
  return {
    signal: stop.signal,
    onClose(name, close, bound = { boundMs: deps.boundMs ?? 10_000 }) {
      releasers.push({ name, close, ...bound });
    },
    close() {
      closing ??= closeAll();
      return closing;
    },
  };
}

/** One thing that does not close must not keep the others open: it is named in the log and left behind. */
async function release(log: Log, releaser: { name: string; close: () => unknown; boundMs: number }): Promise<void> {
  const { name, close, boundMs } = releaser;
  const late = Promise.withResolvers<"late">();
  const timer = setTimeout(() => late.resolve("late"), boundMs);
  try {
    // The async arrow turns a throw of `close` itself into a rejection like any other.
    if ((await Promise.race([(async () => close())(), late.promise])) === "late")
      log.error({ releaser: name, boundMs }, "did not close in time, left behind");
  } catch (err) {
    log.error({ err, releaser: name }, "did not close cleanly");
  } finally {
    clearTimeout(timer);
  }
}

/**
 * SIGTERM and SIGINT close everything and end the process with 0; a second one ends it at once. A rejection or
 * exception nobody handled means that the state in memory is not known any more: close and end with 1.
 * `lingerMs` is how long the process may stay after everything is closed, should something unnamed hold it open.
 */
export function installSignals(shutdown: Shutdown, deps: { log: Log; lingerMs?: number }): void {
  const { log, lingerMs = 2_000 } = deps;
  async function end(code: number): Promise<void> {
    await shutdown.close();
    // A crash during the drain has set 1 already, and that stays.
    process.exitCode = Math.max(Number(process.exitCode ?? 0), code);
    setTimeout(() => {
      try {
        log.warn({ resources: process.getActiveResourcesInfo() }, "closed, but something holds the process; leaving");
      } finally {
        // Writing fails when whoever read our output is gone; leaving must not.
        process.exit();
      }
    }, lingerMs).unref();
  }
  let asked = false;
  function onSignal(name: NodeJS.Signals): void {
    if (asked) {
      log.warn({ signal: name }, "second signal, leaving at once");
      process.exit(1);
    }
    asked = true;
    log.info({ signal: name }, "closing");
    void end(0);
  }
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, onSignal);
  for (const name of ["uncaughtException", "unhandledRejection"] as const)
    process.on(name, (err: unknown) => {
      log.fatal({ err, event: name }, "the process cannot go on");
      void end(1);
    });
}
