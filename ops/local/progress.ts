import type { Say } from "./service.ts";

export type Progress = {
  /** What is being done now. */
  say: Say;
  /** A line that stays. */
  print(line?: string): void;
};

/** On a terminal one line that changes; elsewhere a line per step. Seconds since the start stand in front. */
export function createProgress(to: NodeJS.WriteStream = process.stdout): Progress {
  const begun = performance.now();
  const stamp = () => `${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s`;
  const wipe = () => (to.isTTY ? "\r\u001b[2K" : "");
  return {
    say: (line) => void to.write(to.isTTY ? `${wipe()}${stamp()}  ${line} …` : `${stamp()}  ${line}\n`),
    print: (line = "") => void to.write(`${wipe()}${line}\n`),
  };
}
