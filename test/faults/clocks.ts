import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Fault } from "./nemesis.ts";
import type { Random } from "./random.ts";

/** What a process needs whose clock is to be set through a file. */
export function clockEnv(file: string): Record<string, string> {
  const preload = fileURLToPath(new URL("./clock-preload.ts", import.meta.url));
  return { NODE_OPTIONS: `--import=${preload}`, CLOCK_FILE: file };
}

const minuteMs = 60_000;

/** Clocks of single processes that run minutes ahead or behind for a while. A process may die with its clock so. */
export function clockFault(files: readonly string[], random: Random): Fault {
  const set = async (file: string, offMs: number, dies: boolean) => {
    await writeFile(file, String(offMs));
    // Longer than the ten seconds after which a process compares its clock again, or not.
    await pause(random.between(5_000, 12_000));
    await writeFile(file, "0");
    const pid = dies ? Number(await readFile(`${file}.pid`, "utf8").catch(() => "0")) : 0;
    try {
      if (pid > 0) process.kill(pid, "SIGKILL");
    } catch {
      // It was gone before we came.
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
