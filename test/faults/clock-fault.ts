import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";

/** Returns the environment of a process whose clock the given file shifts. */
export function clockEnv(file: string): Record<string, string> {
  const preload = fileURLToPath(new URL("./fault-clock-preload.ts", import.meta.url));
  return { NODE_OPTIONS: `--import=${preload}`, CLOCK_FILE: file };
}

const minuteMs = 60_000;

/** Shifts the clocks of single processes by minutes for a while. A process may be killed before its clock is reset. */
export function clockFault(files: readonly string[], random: Random): Fault {
  const set = async (file: string, offMs: number, dies: boolean) => {
    await writeFile(file, String(offMs));
    // Sometimes longer than the ten seconds between two clock comparisons of a process.
    await pause(random.between(5_000, 12_000));
    await writeFile(file, "0");
    const pid = dies ? Number(await readFile(`${file}.pid`, "utf8").catch(() => "0")) : 0;
    try {
      if (pid > 0) process.kill(pid, "SIGKILL");
    } catch {
      // The process has already exited.
    }
  };
  const run = async () => {
    for (const file of random.shuffle(files)) {
      const ahead = random.between(3, 7) * minuteMs;
      await set(file, ahead, random.chance(0.5));
      await pause(random.between(500, 2_000));
    }
    await set(random.pick(files), -random.between(3, 7) * minuteMs, random.chance(0.5));
  };
  return { name: "clocks are minutes off", run };
}
