import { parseArgs } from "node:util";
import { Registry } from "prom-client";
import { canonicalAsset } from "../chains/canonical-ids.ts";
import { openChains } from "../chains/open-chains.ts";
import { ConfigError, describeIssues, readSignerConfig, type SignerConfig } from "../runtime/config.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { createMetrics } from "../runtime/metrics.ts";
import { readNetworks, readText } from "../runtime/networks/read-networks.ts";
import { startProbes } from "../runtime/probes.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import { repeatEvery } from "../runtime/repeat.ts";
import { createShutdown, installSignals } from "../runtime/shutdown.ts";
import { applyDueClaims } from "./apply-due-claims.ts";
import { listWaitingKeys } from "./approval-keys.ts";
import { createChainCheck } from "./check-chain.ts";
import { decideFile, showWaiting } from "./decide-file.ts";
import { listWaiting } from "./destinations.ts";
import { openLimits } from "./limits.ts";
import { openTreasuryKeys } from "./open-treasury-keys.ts";
import { readListen } from "./read-listen.ts";
import { rebuildPayouts } from "./rebuild.ts";
import { refusalReasons } from "./refusals.ts";
import { startServer } from "./server.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { createStore, openStore } from "./store.ts";
import { readHotBalances } from "./watch-hot-balances.ts";
import { withdrawalFile, withdrawCapital } from "./withdraw-capital.ts";

/** How long the process waits for running requests after SIGTERM, milliseconds. */
const DRAIN_MS = 20_000;

/** Interval between reads of the treasury's balances for metrics, milliseconds. */
const HOT_BALANCES_EVERY_MS = 60_000;

/** Serves payouts until a signal. */
async function serve(config: SignerConfig, log: Log): Promise<void> {
  const networks = readNetworks(config.NETWORKS_FILE);
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });
  const registry = new Registry();
  const metrics = createMetrics(registry, "signer");
  const store = openStore(config.SIGNER_STORE);
  shutdown.onClose("store", () => store.close());
  const readLimits = openLimits(config.SIGNER_LIMITS_FILE, { log });
  const state = { listening: false };
  const probes = await startProbes({
    host: config.HOST,
    port: config.METRICS_PORT,
    registry,
    isDraining: () => shutdown.signal.aborted,
    ready: async () => {
      const checks = { listening: state.listening, limits: readLimits() !== undefined };
      return { ok: Object.values(checks).every(Boolean), checks };
    },
  });
  shutdown.onClose("probes", () => probes.close());
  log.info({ port: probes.port }, "metrics listening");
  const setPaused = () => metrics.signerPaused.set(readLimits()?.paused === false ? 0 : 1);
  setPaused();
  // A series that begins with its first refusal would show no increase.
  for (const reason of refusalReasons) metrics.signerRefusals.inc({ reason }, 0);
  const now = () => new Date();
  const timer = setInterval(() => {
    setPaused();
    applyDueClaims({ store, readLimits, log, now });
    metrics.signerDestinationsWaiting.set(listWaiting(store).length);
    metrics.signerApprovalKeysWaiting.set(listWaitingKeys(store).length);
  }, 1_000);
  shutdown.onClose("claims and gauges", () => clearInterval(timer));

  const chains = openChains(networks, metrics);
  const treasuryKeys = await openTreasuryKeys(chains);
  const checkChain = createChainCheck({ chains, log, now });
  for (const id of chains.keys()) void checkChain(id);
  const deps: SignerDeps = {
    store,
    chains,
    checkChain,
    deployment: networks.deployment,
    treasuryKeys,
    readLimits,
    log,
    metrics,
    now,
  };
  shutdown.onClose(
    "hot balances",
    repeatEvery(HOT_BALANCES_EVERY_MS, () => readHotBalances(deps)),
  );
  const server = await startServer(deps, readListen(config));
  shutdown.onClose("server", () => server.close(), { timeoutMs: DRAIN_MS });
  state.listening = true;
  log.info({ url: server.url }, "listening");
}

/**
 * Rebuilds the payouts of a store that was lost from the chains, and retires its treasuries. Creates the store when there is
 * none. Prints what an operator has to do before it can end.
 */
async function rebuild(config: SignerConfig, log: Log, args: string[]): Promise<void> {
  const many = { type: "string", multiple: true } as const;
  const {
    from = [],
    accept = [],
    leave = [],
  } = parseArgs({ args, options: { from: many, accept: many, leave: many } }).values;
  const { deployment, ...networks } = readNetworks(config.NETWORKS_FILE);
  const store = createStore(config.SIGNER_STORE);
  const chains = openChains({ deployment, ...networks }, createMetrics(new Registry(), "signer"));
  const pairs = (given: readonly string[]) =>
    given.map((text) => text.split("=")).map(([name = "", value = "0"]) => [name, value] as const);
  const { recorded, unattributed, held } = await rebuildPayouts(
    { store, chains, deployment, log, now: () => new Date() },
    {
      from: new Map(pairs(from).map(([chain, block]) => [chain, Number(block)])),
      accepted: new Set(accept),
      left: new Map(pairs(leave).map(([asset, amount]) => [canonicalAsset(asset), BigInt(amount)])),
    },
  );
  for (const { chain, txHash, logIndex, amount } of unattributed)
    console.log(`${chain} ${txHash}/${logIndex} ${amount} belongs to no payout`);
  for (const { asset, amount } of held)
    console.log(
      `the treasury holds ${amount} of ${asset}: move it to the new treasury, because lost signatures can take it`,
    );
  console.log(`${recorded} payouts recorded`);
  if (unattributed.length + held.length > 0) process.exitCode = 1;
}

/** Signs the withdrawal that a file describes, and prints the call that makes it. */
async function withdraw(config: SignerConfig, log: Log, [file = ""]: string[]): Promise<void> {
  const networks = readNetworks(config.NETWORKS_FILE);
  const { deployment } = networks;
  const metrics = createMetrics(new Registry(), "signer");
  const chains = openChains(networks, metrics);
  const store = openStore(config.SIGNER_STORE);
  const readLimits = openLimits(config.SIGNER_LIMITS_FILE, { log });
  const treasuryKeys = await openTreasuryKeys(chains);
  const parsed = withdrawalFile.safeParse(JSON.parse(readText(file)), { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues("the file of the withdrawal", parsed.error));
  const now = () => new Date();
  const checkChain = createChainCheck({ chains, log, now });
  const deps = { store, chains, checkChain, deployment, treasuryKeys, readLimits, log, metrics, now };
  const { ok, ...result } = await withdrawCapital(deps, parsed.data);
  console.log(JSON.stringify(result));
  if (!ok) process.exitCode = 1;
}

const [command = "serve", ...args] = process.argv.slice(2);
try {
  const config = readSignerConfig(process.env);
  const log = createLog({ level: config.LOG_LEVEL, role: "signer" });
  if (command === "serve") await serve(config, log);
  else if (command === "init") createStore(config.SIGNER_STORE).close();
  else if (command === "rebuild") await rebuild(config, log, args);
  else if (command === "withdraw") await withdraw(config, log, args);
  else if (command === "decide") decideFile(config, args);
  else if (command === "waiting") showWaiting(config);
  else throw new ConfigError(`unknown command ${command}; expected serve, init, rebuild, withdraw, decide or waiting`);
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : describeBriefly(error));
  process.exit(1);
}
