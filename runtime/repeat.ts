/**
 * Runs `step` now and again `everyMs` after each run has ended, so that runs never overlap. `step` must not reject. Returns a
 * function that stops the repetition.
 */
export function repeatEvery(everyMs: number, step: () => Promise<void>): () => void {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const run = async () => {
    await step();
    if (!stopped) timer = setTimeout(() => void run(), everyMs).unref();
  };
  void run();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
