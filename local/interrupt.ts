/**
 * Runs `stop` and then ends the process: on Ctrl-C, on SIGTERM, on an unhandled error, when nothing reads its output any
 * more, and when the npm that runs this process dies. A terminal and npm both forward Ctrl-C, so a second signal within one
 * second counts as the same one; a later one ends the process at once.
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
  // Otherwise the error of a closed pipe would be an unhandled one, and printing that would be the next.
  for (const output of [process.stdout, process.stderr]) output.on("error", () => end(1));
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      console.error(error);
      end(1);
    });
  }
  if (process.env["npm_lifecycle_event"] !== undefined) {
    const npm = process.ppid;
    const checkParent = () => {
      if (process.ppid !== npm) end(1);
    };
    setInterval(checkParent, 1_000).unref();
  }
}
