import { unlink, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import type { Service } from "../../local/service.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";
import type { TestEnvironment } from "./test-environment.ts";

/** Longer than every lease: 60 seconds and a little. */
const minuteMs = 62_000;

/** Returns the faults of processes, Postgres and Redis. `alone` serializes a fault with a restore of the database. */
export function processFaults(
  environment: TestEnvironment,
  { random, alone }: { random: Random; alone: <T>(work: () => Promise<T>) => Promise<T> },
): Fault[] {
  const { redis, postgres } = environment;
  const flush = async () => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
  };
  const freeze = async () => {
    const pid = kill(environment, random, "worker", "SIGSTOP");
    // Longer than a lease: the resumed worker must notice that another worker has taken over.
    await pause(random.between(5_500, 7_000));
    if (pid !== undefined) signalProcess(pid, "SIGCONT");
  };
  const restart = async (service: Service, how: NodeJS.Signals) => {
    await service.kill(how);
    await pause(random.between(0, 1_500));
    await service.start();
  };
  // An immediate shutdown, or a kill. After a failover the original primary no longer exists.
  const restartPostgres = () =>
    alone(async () => {
      if (environment.replicated?.hasFailedOver() !== true)
        await restart(postgres, random.pick(["SIGQUIT", "SIGKILL"]));
    });
  const loseList = async () => {
    const isGone = random.chance(0.5);
    if (isGone) await unlink(environment.screeningList);
    else await writeFile(environment.screeningList, "this is no account\n");
    await pause(random.between(2_500, 4_500));
    await writeFile(environment.screeningList, screeningListText);
  };
  return [
    { name: "kill -9 of a worker", run: async () => kill(environment, random, "worker", "SIGKILL") },
    { name: "kill -9 of a worker", run: async () => kill(environment, random, "worker", "SIGKILL") },
    { name: "kill -9 of an api", run: async () => kill(environment, random, "api", "SIGKILL") },
    { name: "a worker is stopped for seconds", run: freeze },
    { name: "FLUSHALL", run: flush },
    { name: "Redis restarts", run: () => restart(redis, random.pick(["SIGKILL", "SIGTERM"])) },
    { name: "Postgres restarts", run: restartPostgres },
    { name: "the screening list is unreadable", run: loseList },
  ];
}

/** The text of a screening list that names no account of a run. */
export const screeningListText = "# accounts that are not served\n0x00000000000000000000000000000000deadbeef\n";

/** Returns the fault that stops a worker for a minute and resumes it after others have taken over. */
export function freezeForAMinute(environment: TestEnvironment, random: Random): Fault {
  const run = async () => {
    const pid = kill(environment, random, "worker", "SIGSTOP");
    if (pid !== undefined) environment.frozen.add(pid);
    await pause(minuteMs);
    if (pid === undefined) return;
    environment.frozen.delete(pid);
    signalProcess(pid, "SIGCONT");
  };
  return { name: "a worker is frozen for a minute", run };
}

/** Signals one process of a role that is not frozen and returns its id. Returns undefined when none is running. */
export function kill(
  environment: TestEnvironment,
  random: Random,
  role: "api" | "worker",
  signal: NodeJS.Signals,
): number | undefined {
  const pids = environment.supervisor.pids(role).filter((pid) => !environment.frozen.has(pid));
  if (pids.length === 0) return undefined;
  const pid = random.pick(pids);
  signalProcess(pid, signal);
  return pid;
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has already exited.
  }
}
