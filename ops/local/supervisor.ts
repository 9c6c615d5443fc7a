import { setTimeout as pause } from "node:timers/promises";
import { launchProcess, type ProcessOptions, type Role, type ServiceProcess, waitReady } from "./process.ts";

export type Supervisor = {
  /** Process ids of a role that run now. */
  pids(role: Role): number[];
  /** Ends all of them, newest first, each within the bound; nothing is started again after that. */
  stop(withinMs: number): Promise<void>;
};

export type SupervisorOptions = {
  processes: readonly ProcessOptions[];
  /** After every death and every start. */
  onChange: () => unknown;
  onDeath: (role: Role, how: string) => unknown;
};

type Slot = { options: ProcessOptions; running: ServiceProcess | undefined; watched?: Promise<void> };

const longestPauseMs = 5_000;
const healthyAfterMs = 10_000;

/**
 * Starts processes, waits until all are ready, and starts again whichever dies, as a container platform would: at once
 * the first time, later and later while it keeps dying.
 */
export async function supervise({ processes, onChange, onDeath }: SupervisorOptions): Promise<Supervisor> {
  const stopping = new AbortController();
  const slots: Slot[] = processes.map((options) => ({ options, running: undefined }));

  async function watch(slot: Slot): Promise<void> {
    let pauseMs = 0;
    while (!stopping.signal.aborted) {
      const since = Date.now();
      const ended = await slot.running?.gone;
      slot.running = undefined;
      if (stopping.signal.aborted) return;
      if (ended !== undefined) {
        onDeath(slot.options.role, ended.signal ?? `exit code ${ended.code}`);
        await onChange();
      }
      pauseMs = Date.now() - since > healthyAfterMs ? 0 : Math.min(longestPauseMs, pauseMs * 2 + 100);
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      slot.running = await launchProcess(slot.options).catch(() => undefined);
      await onChange();
    }
  }
  async function stop(withinMs: number): Promise<void> {
    stopping.abort();
    await Promise.all(slots.map((slot) => slot.running?.kill("SIGTERM", withinMs)));
    await Promise.all(slots.map((slot) => slot.watched));
    // One that was being started while we stopped.
    await Promise.all(slots.map((slot) => slot.running?.kill("SIGTERM", withinMs)));
  }

  try {
    for (const slot of slots) slot.running = await launchProcess(slot.options);
    await Promise.all(slots.map((slot) => slot.running && waitReady(slot.running, 60_000)));
  } catch (error) {
    await stop(2_000);
    throw error;
  }
  for (const slot of slots) slot.watched = watch(slot);
  return {
    pids: (role) => slots.flatMap(({ running }) => (running?.role === role && !running.isGone() ? [running.pid] : [])),
    stop,
  };
}
