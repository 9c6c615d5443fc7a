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
  onLine?: (line: string) => void;
};

export type ServiceProcess = {
  readonly role: Role;
  readonly pid: number;
  /** Where it serves HTTP; for a worker nobody listens there. */
  readonly url: string;
  readonly metricsUrl: string;
  /** The lines it has written so far, the newest 20000 of them. */
  readonly lines: readonly string[];
  /** Settles when it is gone; never rejects. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  /** Its newest output as it came. */
  tail(): string;
  /** Sends the signal and waits until it has left (after `withinMs` it is killed). */
  kill(signal: NodeJS.Signals, withinMs?: number): Promise<void>;
};

const root = fileURLToPath(new URL("../../", import.meta.url));
/** A process that logs for days must not fill our memory. */
const linesKept = 20_000;

/** Starts one of our processes. It may take a while until it serves: see waitReady. */
export async function launchProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const { role } = options;
  const port = options.port ?? (await freePort());
  const metricsPort = options.metricsPort ?? (await freePort());
  const lines: string[] = [];
  const ports = { HOST: "127.0.0.1", PORT: String(port), METRICS_PORT: String(metricsPort) };
  const child = await startChild(process.execPath, [entryPoints[role]], {
    cwd: root,
    // Without the supervisor its services are gone too: there is nothing to drain into.
    orphanSignal: "SIGKILL",
    env: { ...inherited(), ...ports, ...options.env },
    onLine(line) {
      lines.push(line);
      if (lines.length > linesKept) lines.splice(0, lines.length - linesKept);
      options.onLine?.(line);
    },
  });
  return {
    role,
    pid: child.pid,
    url: `http://127.0.0.1:${port}`,
    metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    lines,
    gone: child.gone,
    isGone: child.isGone,
    tail: child.tail,
    kill: (signal, withinMs = 60_000) => child.end(signal, withinMs),
  };
}

/** Waits until the process answers /readyz with 200. When it does not, it is killed and the error holds its last words. */
export async function waitReady(started: ServiceProcess, withinMs = 30_000): Promise<void> {
  const { role } = started;
  const ready = new URL("/readyz", started.metricsUrl).href;
  const ask = () => started.isGone() || isOk(ready);
  await waitUntil(`${role} is ready`, ask, { withinMs, everyMs: 50 }).catch(async (cause) => {
    await started.kill("SIGKILL");
    throw new Error(`${role} did not become ready; its last words:\n${started.tail()}`, { cause });
  });
  if (started.isGone()) throw new Error(`${role} ended instead of starting; its last words:\n${started.tail()}`);
}

/** Both: a process that serves. */
export async function startProcess(options: ProcessOptions & { readyMs?: number }): Promise<ServiceProcess> {
  const started = await launchProcess(options);
  await waitReady(started, options.readyMs);
  return started;
}

/** What every program may need; a variable of ours that is set by chance must not reach the service. */
function inherited(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "NODE_COMPILE_CACHE"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

async function isOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined);
  await response?.arrayBuffer();
  return response?.ok ?? false;
}
