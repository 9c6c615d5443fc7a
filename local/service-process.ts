import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild } from "./child-process.ts";
import { freePort } from "./free-ports.ts";
import { waitUntil } from "./wait-until.ts";

/** The sources that start the processes of the service, by the role in their metrics. */
const entryPoints = {
  api: "api/main.ts",
  worker: "workers/main.ts",
  "bull-board": "ops/bull-board/main.ts",
  signer: "signer/main.ts",
} as const;

export type Role = keyof typeof entryPoints;

/**
 * Node's arguments of every process of the service; ops/compose/run.sh has the same. Under load a process makes several
 * megabytes of short-lived objects a second: with room for them V8 collects garbage less often, and moves fewer of them.
 */
export const heapArgs = ["--min-semi-space-size=16", "--max-semi-space-size=32"];

export type ProcessOptions = {
  role: Role;
  /** The folder of a build (scripts/build.ts), which is run instead of the sources. */
  build?: string | undefined;
  /** More arguments of Node. */
  nodeArgs?: readonly string[];
  /** Its environment, without the ports. Of this process, only PATH and the like are passed on. */
  env: Record<string, string>;
  /** Free ports are used when unset. */
  port?: number;
  metricsPort?: number;
  onLine?: (line: string) => void;
};

export type ServiceProcess = {
  readonly role: Role;
  readonly pid: number;
  /** Where it serves HTTP; a worker does not listen there. */
  readonly url: string;
  readonly metricsUrl: string;
  /** Its newest 20000 lines of output. */
  readonly lines: readonly string[];
  /** Settles when it has ended; never rejects. */
  readonly gone: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  isGone(): boolean;
  /** Returns its newest output, unparsed. */
  tail(): string;
  /** Sends the signal and waits until the process has ended. Kills it after `withinMs`. */
  kill(signal: NodeJS.Signals, withinMs?: number): Promise<void>;
};

const root = fileURLToPath(new URL("../", import.meta.url));
/** Limits the memory for the log of a process that runs for days. */
const linesKept = 20_000;

/** Starts a process of the service. It is not ready yet when this returns: see waitReady. */
export async function launchProcess(options: ProcessOptions): Promise<ServiceProcess> {
  const { role, build, nodeArgs = [] } = options;
  const program = build === undefined ? entryPoints[role] : join(build, `${role}.js`);
  const port = options.port ?? (await freePort());
  const metricsPort = options.metricsPort ?? (await freePort());
  const lines: string[] = [];
  const ports = { HOST: "127.0.0.1", PORT: String(port), METRICS_PORT: String(metricsPort) };
  const child = await startChild(process.execPath, [...heapArgs, ...nodeArgs, program], {
    cwd: root,
    // Without the supervisor, Postgres and Redis are gone too, so there is nothing to drain to.
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

/** Waits until /readyz returns 200. Otherwise kills the process and throws an error with its last output. */
export async function waitReady(started: ServiceProcess, withinMs = 90_000): Promise<void> {
  const { role } = started;
  const ready = new URL("/readyz", started.metricsUrl).href;
  const ask = () => started.isGone() || isOk(ready);
  await waitUntil(`${role} is ready`, ask, { withinMs, everyMs: 50 }).catch(async (cause) => {
    await started.kill("SIGKILL");
    throw new Error(`${role} did not become ready; its last output:\n${started.tail()}`, { cause });
  });
  if (started.isGone()) throw new Error(`${role} ended instead of starting; its last output:\n${started.tail()}`);
}

/** Returns the variables that every program may need. Any other variable of this process must not reach the service. */
function inherited(): Record<string, string> {
  const names = ["PATH", "HOME", "TMPDIR", "NODE_COMPILE_CACHE"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

async function isOk(url: string): Promise<boolean> {
  const response = await fetch(url, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
  await response?.arrayBuffer();
  return response?.ok ?? false;
}
