import type { Terminal } from "./terminal.ts";

/** Runs work that has no end of its own: Ctrl-C is how it succeeds. */
export async function untilInterrupted({ signal }: Terminal, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
