import { setTimeout as pause } from "node:timers/promises";
import { launchProcess, type ProcessOptions, type Role, type ServiceProcess, waitReady } from "./service-process.ts";

export type Supervisor = {
  /** Returns the ids of the running processes of a role. */
  pids(role: Role): number[];
  /** Ends the running processes of these roles with SIGTERM; the supervisor starts each of them again. */
  restart(roles: readonly Role[], withinMs: number): Promise<void>;
  /** Ends the running processes of these roles, and starts each of them again when the returned function is called. */
  hold(roles: readonly Role[], withinMs: number): Promise<() => void>;
  /** Ends all processes, each within the time limit, and starts none again. */
  stop(withinMs: number): Promise<void>;
};

export type SupervisorOptions = {
  processes: readonly ProcessOptions[];
  /** Called after every death and every start. */
  onChange: () => unknown;
  /** Called when a process ends that was neither restarted nor stopped. */
  onDeath: (role: Role, how: string) => unknown;
};

type Slot = {
  options: ProcessOptions;
  running: ServiceProcess | undefined;
  isRestarting: boolean;
  /** Settles when the process may start again. */
  held?: Promise<void>;
  supervised?: Promise<void>;
};

const longestPauseMs = 5_000;
const healthyAfterMs = 10_000;

/**
 * Starts processes, waits until all are ready, and restarts those that end, as a container platform does: at once the first
 * time, and with longer and longer pauses while a process keeps ending.
 */
export async function supervise({ processes, onChange, onDeath }: SupervisorOptions): Promise<Supervisor> {
  const stopping = new AbortController();
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener("abort", () => resolve()));
  const slots: Slot[] = processes.map((options) => ({ options, running: undefined, isRestarting: false }));

  async function superviseSlot(slot: Slot): Promise<void> {
    let pauseMs = 0;
    while (!stopping.signal.aborted) {
      const since = Date.now();
      const ended = await slot.running?.gone;
      slot.running = undefined;
      if (stopping.signal.aborted) return;
      if (ended !== undefined) {
        if (!slot.isRestarting) onDeath(slot.options.role, ended.signal ?? `exit code ${ended.code}`);
        await onChange();
      }
      const isHealthy = slot.isRestarting || Date.now() - since > healthyAfterMs;
      slot.isRestarting = false;
      pauseMs = isHealthy ? 0 : Math.min(longestPauseMs, pauseMs * 2 + 100);
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      await Promise.race([slot.held, stopped]);
      if (stopping.signal.aborted) return;
      slot.running = await launchProcess(slot.options).catch(() => undefined);
      await onChange();
    }
  }
  async function restart(roles: readonly Role[], withinMs: number): Promise<void> {
    const chosen = slots.filter(({ options, running }) => running !== undefined && roles.includes(options.role));
    for (const slot of chosen) slot.isRestarting = true;
    await Promise.all(chosen.map((slot) => slot.running?.kill("SIGTERM", withinMs)));
  }
  async function hold(roles: readonly Role[], withinMs: number): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const slot of slots) if (roles.includes(slot.options.role)) slot.held = promise;
    await restart(roles, withinMs);
    return resolve;
  }
  async function stop(withinMs: number): Promise<void> {
    stopping.abort();
    await Promise.all(slots.map((slot) => slot.running?.kill("SIGTERM", withinMs)));
    await Promise.all(slots.map((slot) => slot.supervised));
    // A process that was being started meanwhile.
    await Promise.all(slots.map((slot) => slot.running?.kill("SIGTERM", withinMs)));
  }

  try {
    for (const slot of slots) slot.running = await launchProcess(slot.options);
    await Promise.all(slots.map((slot) => slot.running && waitReady(slot.running)));
  } catch (error) {
    await stop(2_000);
    throw error;
  }
  for (const slot of slots) slot.supervised = superviseSlot(slot);
  return {
    pids: (role) => slots.flatMap(({ running }) => (running?.role === role && !running.isGone() ? [running.pid] : [])),
    restart,
    hold,
    stop,
  };
}
