import type { Say } from "./service.ts";

export type Progress = {
  /** Shows the current step. */
  say: Say;
  /** Prints a line that stays. */
  print(line?: string): void;
};

/** Shows the current step in one changing line on a terminal, and as a line per step elsewhere, with the seconds since the start. */
export function createProgress(to: NodeJS.WriteStream = process.stdout): Progress {
  const begun = performance.now();
  const stamp = () => `${((performance.now() - begun) / 1_000).toFixed(1).padStart(6)} s`;
  const clear = () => (to.isTTY ? "\r\u001b[2K" : "");
  return {
    say: (line) => void to.write(to.isTTY ? `${clear()}${stamp()}  ${line} …` : `${stamp()}  ${line}\n`),
    print: (line = "") => void to.write(`${clear()}${line}\n`),
  };
}
