import { fileURLToPath } from "node:url";
import { startChild } from "./child.ts";
import { freePort } from "./ports.ts";
import { waitUntil } from "./wait.ts";

/** Our own processes, by the role their metrics carry. */
export const entryPoints = {
  api: "api/main.ts",
  worker: "workers/main.ts",
  "bull-board": "ops/bull-board/main.ts",
} as const;

export type Role = keyof typeof entryPoints;

export type ProcessOptions = {
  role: Role;
  /** What it needs beside its ports; nothing of our own environment but the PATH is passed on. */
  env: Record<string, string>;
  /** Free ones when unset. */
  port?: number;
  metricsPort?: number;
  /** How long it may take to answer /readyz with 200. */
  readyMs?: number;
  onLine?: (line: string) => void;
};

export type ServiceProcess = {
  readonly role: Role;
  readonly pid: number;
  /** Where it serves HTTP; for a worker nobody listens there. */
  readonly url: string;
  readonly metricsUrl: string;
  /** Every line it has written so far. */
  readonly lines: readonly string[];
  /** Settles when it is gone; never rejects. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  /** Sends the signal and waits until it has left (after `withinMs` it is killed). */
  kill(signal: NodeJS.Signals, withinMs?: number): Promise<void>;
};

const root = fileURLToPath(new URL("../../", import.meta.url));
const passedOn = ["PATH", "HOME", "TMPDIR"];

/** Starts one of our processes and waits until it says that it is ready. Throws with its last words when it ends instead. */
export async function startProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const { role } = options;
  const port = options.port ?? (await freePort());
  const metricsPort = options.metricsPort ?? (await freePort());
  const lines: string[] = [];
  const inherited = Object.fromEntries(
    passedOn.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
  );
  const ports = { HOST: "127.0.0.1", PORT: String(port), METRICS_PORT: String(metricsPort) };
  const child = await startChild(process.execPath, [entryPoints[role]], {
    cwd: root,
    env: { ...inherited, ...ports, ...options.env },
    onLine(line) {
      lines.push(line);
      options.onLine?.(line);
    },
  });
  const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  const ready = `http://127.0.0.1:${metricsPort}/readyz`;
  const asked = waitUntil(`${role} is ready`, () => child.isGone() || isOk(ready), {
    withinMs: options.readyMs ?? 30_000,
  });
  await asked.catch(async (error) => {
    await child.end("SIGKILL");
    throw new Error(`${role} did not become ready; its last words:\n${child.tail()}`, { cause: error });
  });
  if (child.isGone()) throw new Error(`${role} ended instead of starting; its last words:\n${child.tail()}`);
  return {
    role,
    pid: child.pid,
    url: `http://127.0.0.1:${port}`,
    metricsUrl,
    lines,
    gone: child.gone,
    isGone: child.isGone,
    kill: (signal, withinMs = 60_000) => child.end(signal, withinMs),
  };
}

async function isOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await response?.arrayBuffer();
  return response?.ok ?? false;
}
