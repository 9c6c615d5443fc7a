/**
 * Runs `stop` on Ctrl-C, SIGTERM, or an error nobody handled, and ends the process after it. A terminal and npm both
 * pass Ctrl-C on, so a second signal within a second is the same one; after that it ends the process at once.
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
}
