/**
 * Runs `stop` and then ends the process: on Ctrl-C, on SIGTERM, on an error nobody handled, and when the npm that runs
 * us is gone without a word. A terminal and npm both pass Ctrl-C on, so a second signal within a second is the same
 * one; a later one ends the process at once.
 */
export function onInterrupt(stop: () => Promise<void>): void {
  let since: number | undefined;
  function end(code: number): void {
    if (since !== undefined) return;
    since = Date.now();
    void stop().finally(() => process.exit(code));
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (since !== undefined && Date.now() - since > 1_000) process.exit(130);
      end(0);
    });
  }
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      console.error(error);
      end(1);
    });
  }
  if (process.env.npm_lifecycle_event !== undefined) {
    const npm = process.ppid;
    const look = () => {
      if (process.ppid !== npm) end(1);
    };
    setInterval(look, 1_000).unref();
  }
}
