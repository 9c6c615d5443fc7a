import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Say } from "../../local/service.ts";
import { type Stack, startStack } from "../../local/stack.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { listTargets } from "../dashboards/run-dashboards.ts";
import { type Prometheus, startPrometheus } from "../dashboards/start-prometheus.ts";
import { clockEnv } from "../faults/clock-fault.ts";
import { type Endpoint, evmCluster, startFaultyEndpoint } from "../faults/faulty-endpoint.ts";
import { solanaCluster } from "../faults/faulty-solana-endpoint.ts";
import { builtService } from "../support/built-service.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startWebProxy } from "../support/web-proxy.ts";

/** A local stack, Prometheus with the shipped rules, and what faults need between the service and the rest. */
export type TestBed = {
  stack: Stack;
  prometheus: Prometheus;
  /** The only endpoint by which the service reaches Anvil. */
  evm: Endpoint;
  /** Both endpoints by which the service reaches Solana. Its mode `forgets receipts` returns no transaction of the history. */
  solana: Endpoint;
  /** Between the worker's check of the buyers' pages and the api. */
  pages: Awaited<ReturnType<typeof startWebProxy>>;
  /** The file that shifts the worker's clock; it holds milliseconds. */
  workerClock: string;
  screeningList: string;
  auditSink: string;
  /** Where rows of history are exported before they leave. */
  historyFolder: string;
};

const SLOT_MS = 400;

/** Starts a stack with one worker, two tokens on EVM, and Prometheus. Cleanups stop it. */
export async function startTestBed(dir: string, say: Say): Promise<TestBed> {
  const [workerClock, screeningList] = [join(dir, "worker-clock"), join(dir, "screening-list")];
  await writeFile(workerClock, "0");
  await writeFile(screeningList, "");
  await mkdir(join(dir, "history"));
  const ports = await withFreePorts(readSettings({ ...process.env, STACK_DIR: join(dir, "stack"), LOG_LEVEL: "warn" }));
  const evm = await startFaultyEndpoint({ target: `http://127.0.0.1:${ports.ANVIL_PORT}`, cluster: evmCluster });
  const history = { receipts: "getTransaction", forget: () => ({ result: null }) };
  const solana = await startFaultyEndpoint({
    target: `http://127.0.0.1:${ports.SOLANA_PORT}`,
    cluster: { ...solanaCluster({ slotMs: SLOT_MS, finalityDepthSlots: 32 }), ...history },
  });
  const pages = await startWebProxy();
  pages.pointTo(`http://127.0.0.1:${ports.PORT}`);
  const proxies = { EVM_RPC_URL: evm.url, SOLANA_PROXY_URL: solana.url };
  const settings = { ...ports, ...proxies, WORKERS: 1, TOKENS: 2, SOLANA_SLOT_MS: SLOT_MS };
  process.env["SCREENING_LIST_FILE"] = screeningList;
  const historyFolder = join(dir, "history");
  const api = { PUBLIC_URL: pages.url };
  const worker = { ...clockEnv(workerClock), ...api, RETENTION_EXPORT_FOLDER: historyFolder };
  const stack = await startStack(settings, say, {
    build: builtService,
    envOf: (role) => (role === "worker" ? worker : role === "api" ? api : {}),
  });
  addCleanup(() => stack.stop());
  const prometheus = await startPrometheus(listTargets(stack));
  addCleanup(() => prometheus.close());
  await pause(5_000);
  const auditSink = join(settings.STACK_DIR, "audit-heads.jsonl");
  // Heads are exported after midnight only.
  await writeFile(auditSink, "", { flag: "a" });
  return { stack, prometheus, evm, solana, pages, workerClock, screeningList, auditSink, historyFolder };
}
