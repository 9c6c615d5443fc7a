import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { StackFile } from "../../local/stack-file.ts";

/** Clock ticks a second in /proc (sysconf _SC_CLK_TCK), 100 on every Linux that Node runs on. */
const TICKS = 100;

/** Returns the CPU seconds used so far, by role: Postgres with all its backends, this process as `bench`. Empty without /proc. */
export function readCpu(stack: StackFile): Record<string, number> {
  const { api, workers, signer, postgres, redis, anvil, solana } = stack.processes;
  const used: Record<string, number> = { bench: process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6 };
  const roles: [string, (number | undefined)[]][] = [
    ["api", api],
    ["workers", workers],
    ["signer", signer],
    ["postgres", [postgres]],
    ["redis", [redis]],
    ["anvil", [anvil]],
    ["solana", [solana]],
  ];
  try {
    const all = readProcesses();
    for (const [role, pids] of roles)
      used[role] = all
        .filter(({ pid, parent }) => pids.includes(pid) || (role === "postgres" && parent === postgres))
        .reduce((sum, one) => sum + one.seconds, 0);
  } catch {
    return used;
  }
  return used;
}

/** Returns the CPU seconds used since an earlier reading, by role. */
export function readCpuSince(stack: StackFile, before: Record<string, number>): Record<string, number> {
  const used = Object.entries(readCpu(stack)).map(([role, seconds]) => [role, seconds - (before[role] ?? 0)]);
  return Object.fromEntries(used) as Record<string, number>;
}

/** Returns the busy and idle seconds of all cores so far, for every program on the machine. */
export function readMachine(): { busy: number; idle: number } {
  const times = cpus().map((core) => core.times);
  const idle = times.reduce((sum, time) => sum + time.idle, 0) / 1_000;
  const busy = times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq, 0) / 1_000;
  return { busy, idle };
}

function readProcesses(): { pid: number; parent: number; seconds: number }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        // The command's name is in brackets and may contain blanks.
        const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        const [parent, user, system, reapedUser, reapedSystem] = [
          fields[1],
          fields[11],
          fields[12],
          fields[13],
          fields[14],
        ].map(Number);
        const ticks = (user ?? 0) + (system ?? 0) + (reapedUser ?? 0) + (reapedSystem ?? 0);
        return [{ pid: Number(name), parent: parent ?? 0, seconds: ticks / TICKS }];
      } catch {
        return [];
      }
    });
}
