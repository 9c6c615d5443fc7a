import { join } from "node:path";
import type { Hex } from "viem";
import { execute } from "../../local/execute-sql.ts";
import type { LocalChain } from "../../local/local-chain.ts";
import type { LocalSolana } from "../../local/local-solana.ts";
import type { Say } from "../../local/service.ts";
import { type Stack, startStack } from "../../local/stack.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { buildService, builtService } from "../support/built-service.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { deployTestContract, testContract } from "../support/test-contracts.ts";
import { causeIncidents } from "./incidents.ts";
import { sendMixedLoad } from "./mixed-load.ts";
import { fillVariables, type Panel, readDashboards } from "./read-dashboards.ts";
import { type Exporters, startExporters } from "./start-exporters.ts";
import { type Prometheus, type Series, startPrometheus, type Targets } from "./start-prometheus.ts";

/** A dashboard, and the answers of Prometheus to the queries of its panels. */
export type FilledDashboard = ReturnType<typeof readDashboards>[number] & { answers: ReadonlyMap<Panel, Series[][]> };

/** Time for incidents from which the dashboards show something, seconds. */
const LEAST_SECONDS_OF_INCIDENTS = 60;

/**
 * Starts the local stack with a replica and a second endpoint, the exporters and Prometheus, pays under mixed load, and returns
 * what every panel of the dashboards shows of it.
 * @param args.seconds how long to begin new payments at least; from a minute on, with incidents
 * @param args.isComplete whether the panels show enough; the load goes on for a while until they do
 */
export async function fillDashboards(args: {
  dir: string;
  seconds: number;
  isComplete: (filled: readonly FilledDashboard[]) => boolean;
  say: Say;
}): Promise<FilledDashboard[]> {
  const { dir, seconds, isComplete, say } = args;
  await buildService();
  const settings = await withFreePorts(
    readSettings({
      ...process.env,
      STACK_DIR: join(dir, "stack"),
      REPLICA: "true",
      LOG_LEVEL: "warn",
      SOLANA_SLOT_MS: "400",
    }),
  );
  const second = await startFaultProxy({ target: `http://127.0.0.1:${settings.ANVIL_PORT}` });
  const of = { ...settings, EVM_SECOND_RPC_URL: second.url, WORKERS: seconds < LEAST_SECONDS_OF_INCIDENTS ? 1 : 2 };
  const stack = await startStack(of, say, { build: builtService, describeMore: describePrices });
  let exporters: Exporters | undefined;
  let prometheus: Prometheus | undefined;
  try {
    // Autovacuum runs once a minute, and a panel shows the time since the last vacuum.
    await execute(stack.postgres.url, "vacuum");
    exporters = await startExporters({ postgres: stack.postgres.url, redis: stack.redis.url });
    const running = await startPrometheus({ ...listTargets(stack), ...exporters.targets });
    prometheus = running;
    const from = Date.now() / 1_000;
    const read = () => query(running, { from, to: Date.now() / 1_000 });
    say("paying under mixed load");
    const load = sendMixedLoad(stack, { seconds, isEnough: async () => isComplete(await read()) });
    const incidents = seconds < LEAST_SECONDS_OF_INCIDENTS ? [] : [causeIncidents({ stack, second, seconds, say })];
    await Promise.all([load, ...incidents]);
    await waitForScrapes(running);
    return await read();
  } finally {
    await prometheus?.close();
    await exporters?.close();
    await stack.stop();
    await second.close();
  }
}

/** Deploys a feed with the price of one ether, for both chains. */
async function describePrices(
  { client, id: chain }: LocalChain,
  solana: LocalSolana,
): Promise<Record<string, unknown>> {
  const feed = await deployTestContract(client, "Feed", "Feed");
  const { abi } = testContract("Feed", "Feed");
  const call = async (functionName: "set" | "describe", ...args: unknown[]) => {
    const hash = await client.writeContract({ address: feed as Hex, abi, functionName, args });
    await client.waitForTransactionReceipt({ hash });
  };
  await call("describe", "ETH / USD");
  await call("set", 2_500n * 10n ** 8n, BigInt(Math.floor(Date.now() / 1_000)));
  const price = { coin: "ETH", gasOf: [chain, solana.id], quote: "iso4217/USD", chain, feed, maxAgeSeconds: 86_400 };
  return { nativePrices: [price] };
}

/** Returns the addresses of the stack's processes: the api, the workers, bull-board and the signer. */
export function listTargets(stack: Stack): Targets {
  const [api = "", ...others] = stack.file().metricsUrls.map((url) => new URL(url).host);
  const [board = "", signer = ""] = others.slice(-2);
  return { api: [api], worker: others.slice(0, -2), "bull-board": [board], signer: [signer] };
}

/** Scrapes of each process without which rates have no value, the recorded ones among them. */
const LEAST_SCRAPES = 6;

/** Waits until each process was scraped some times; on a busy machine scrapes time out. */
async function waitForScrapes(prometheus: Prometheus): Promise<void> {
  const hasEnough = async () => {
    const now = Date.now() / 1_000;
    const [least] = await prometheus.queryRange("min(sum_over_time(up[10m]))", { from: now, to: now });
    return (least?.points[0]?.[1] ?? 0) >= LEAST_SCRAPES;
  };
  await waitUntil("every process is scraped", hasEnough, { withinMs: 60_000, everyMs: 200 });
}

async function query(prometheus: Prometheus, range: { from: number; to: number }): Promise<FilledDashboard[]> {
  const filled: FilledDashboard[] = [];
  for (const dashboard of readDashboards()) {
    const answers = new Map<Panel, Series[][]>();
    for (const panel of dashboard.panels) {
      const exprs = panel.targets.map(({ expr }) => fillVariables(expr));
      answers.set(panel, await Promise.all(exprs.map((expr) => prometheus.queryRange(expr, range))));
    }
    filled.push({ ...dashboard, answers });
  }
  return filled;
}
