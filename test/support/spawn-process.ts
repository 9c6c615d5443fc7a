import { type ProcessOptions, type ServiceProcess, startProcess } from "../../local/service-process.ts";
import { addCleanup } from "./cleanups.ts";

export type SpawnedProcess = ServiceProcess & {
  /** Returns its parsed log lines, without lines that are not JSON. */
  records(): Record<string, unknown>[];
};

/**
 * Starts `node api/main.ts`, `node workers/main.ts` or bull-board on free ports with this environment. Waits until the
 * process is ready and kills it when the file is over.
 */
export async function spawnProcess(options: ProcessOptions & { readyMs?: number }): Promise<SpawnedProcess> {
  const started = await startProcess(options);
  addCleanup(() => started.kill("SIGKILL"));
  return { ...started, records: () => started.lines.flatMap(parseLine) };
}

function parseLine(line: string): Record<string, unknown>[] {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null ? [parsed as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}
