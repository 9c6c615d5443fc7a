import { Registry } from "prom-client";
import { openChains } from "../chains/open-chains.ts";
import { openAuditSink } from "../runtime/audit-sink.ts";
import { setBuildInfo } from "../runtime/build-info.ts";
import { ConfigError, describeIssues, readSignerConfig, type SignerConfig } from "../runtime/config.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { readLogFields } from "../runtime/log-context.ts";
import { createMetrics } from "../runtime/metrics.ts";
import { readNetworks } from "../runtime/networks/read-networks.ts";
import { startProbes } from "../runtime/probes.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import { repeatEvery } from "../runtime/repeat.ts";
import { createShutdown, installSignals } from "../runtime/shutdown.ts";
import { failToStart } from "../runtime/start-failure.ts";
import { startTracing } from "../runtime/tracing/start-tracing.ts";
import { agreeDeposits } from "./agree-deposits.ts";
import { applyDueClaims, countHeld } from "./apply-due-claims.ts";
import { runAuditCommand } from "./audit/audit-command.ts";
import { machineActor } from "./audit/entries.ts";
import { setLogAges } from "./audit/heads.ts";
import { keepLog } from "./audit/keep-log.ts";
import { recordLimits } from "./audit/limits-changes.ts";
import { countRows } from "./audit/seal-records.ts";
import { createChainCheck } from "./check-chain.ts";
import { createStore } from "./create-store.ts";
import { decideFile, showWaiting } from "./decide-file.ts";
import { openLimits } from "./limits.ts";
import { openTreasuryKeys } from "./open-treasury-keys.ts";
import { readJsonArgument } from "./read-argument.ts";
import { readListen } from "./read-listen.ts";
import { rebuildPayouts } from "./rebuild.ts";
import { readRebuildOptions } from "./rebuild-options.ts";
import { recordAssets } from "./recorded-assets.ts";
import { refusalReasons } from "./refusals.ts";
import { createRepeatedSteps } from "./repeated-steps.ts";
import { startServer } from "./server.ts";
import { createShortPayouts } from "./short-payouts.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { sendWithdrawal } from "./solana/send-withdrawal.ts";
import { noteRun } from "./stops.ts";
import { openStore } from "./store.ts";
import { usage } from "./usage.ts";
import { setWaitingGauges } from "./waiting-gauges.ts";
import { readHotBalances } from "./watch-hot-balances.ts";
import { withdrawalFile, withdrawCapital } from "./withdraw-capital.ts";

/** How long the process waits for running requests after SIGTERM, milliseconds. */
const DRAIN_MS = 20_000;

/** Interval between reads of the treasury's balances for metrics, milliseconds. */
const HOT_BALANCES_EVERY_MS = 60_000;

/** Interval at which deposits that one endpoint has shown are read from a second one, milliseconds. */
const AGREE_EVERY_MS = 60_000;

/** Interval at which rows are sealed, days of the audit log end, and their heads are exported, milliseconds. */
const AUDIT_EVERY_MS = 60_000;

/** Serves payouts until a signal. */
async function serve(config: SignerConfig, log: Log): Promise<void> {
  const networks = readNetworks(config.NETWORKS_FILE);
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });
  const registry = new Registry();
  const metrics = createMetrics(registry, "signer");
  setBuildInfo(metrics, process.env);
  await startTracing(config, { role: "signer", log, metrics, shutdown });
  const store = openStore(config.SIGNER_STORE);
  shutdown.onClose("store", () => store.close());
  const now = () => new Date();
  noteRun({ store, log }, now());
  const readLimits = openLimits(config.SIGNER_LIMITS_FILE, { log, observe: recordLimits({ store, now }) });
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
  const shortPayouts = createShortPayouts(now);
  const runSteps = createRepeatedSteps(log, {
    limits: setPaused,
    claims: () => {
      noteRun({ store, log }, now());
      applyDueClaims({ store, readLimits, log, now });
    },
    gauges: () => {
      metrics.signerShortAgeSeconds.set(shortPayouts.oldestSeconds());
      setWaitingGauges({ store, metrics });
      metrics.signerClaimsHeld.set(countHeld(store, now()));
      for (const [table, rows] of Object.entries(countRows(store))) metrics.signerStoreRows.set({ table }, rows);
      setLogAges({ store, metrics, now });
    },
  });
  const timer = setInterval(runSteps, 1_000);
  shutdown.onClose("claims and gauges", () => clearInterval(timer));

  const chains = openChains(networks, metrics);
  recordAssets(store, chains, now());
  const treasuryKeys = await openTreasuryKeys(chains);
  const checkChain = createChainCheck({ chains, log, now });
  for (const id of chains.keys()) void checkChain(id);
  const deps: Omit<SignerDeps, "caller"> = {
    store,
    chains,
    checkChain,
    deployment: networks.deployment,
    treasuryKeys,
    readLimits,
    log,
    metrics,
    shortPayouts,
    now,
  };
  if (!config.AUDIT_SINK) log.warn("AUDIT_SINK is not set: the heads of the audit log are kept only in the store");
  const sink = config.AUDIT_SINK ? openAuditSink(config.AUDIT_SINK) : undefined;
  shutdown.onClose(
    "audit log",
    repeatEvery(AUDIT_EVERY_MS, () => keepLog(deps, sink)),
  );
  shutdown.onClose(
    "hot balances",
    repeatEvery(HOT_BALANCES_EVERY_MS, () =>
      readHotBalances(deps).catch((err: unknown) => log.error({ err }, "treasury's balances cannot be read")),
    ),
  );
  shutdown.onClose(
    "deposits",
    repeatEvery(AGREE_EVERY_MS, () => agreeDeposits(deps)),
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
  const options = readRebuildOptions(args);
  const { deployment, ...networks } = readNetworks(config.NETWORKS_FILE);
  const store = createStore(config.SIGNER_STORE, { command: "rebuild", at: new Date() });
  const metrics = createMetrics(new Registry(), "signer");
  const chains = openChains({ deployment, ...networks }, metrics);
  const deps = { store, chains, deployment, log, metrics, now: () => new Date() };
  recordAssets(store, chains, deps.now());
  const { recorded, unattributed, held } = await rebuildPayouts(deps, options);
  for (const { chain, txHash, logIndex, amount } of unattributed)
    console.log(`${chain} ${txHash}/${logIndex} ${amount} belongs to no payout`);
  for (const { treasury, asset, amount } of held)
    console.log(
      `${treasury} holds ${amount} of ${asset}: move it to the new treasury, because lost signatures can take it`,
    );
  console.log(`${recorded} payouts recorded`);
  if (unattributed.length + held.length > 0) process.exitCode = 1;
}

/**
 * Signs the withdrawal that a file describes, and prints the call that makes it. On Solana it sends the transaction once, and
 * prints its signature; a repetition sends it again.
 */
async function withdraw(config: SignerConfig, log: Log, [file = ""]: string[]): Promise<void> {
  const networks = readNetworks(config.NETWORKS_FILE);
  const { deployment } = networks;
  const metrics = createMetrics(new Registry(), "signer");
  const chains = openChains(networks, metrics);
  const store = openStore(config.SIGNER_STORE);
  const now = () => new Date();
  const readLimits = openLimits(config.SIGNER_LIMITS_FILE, { log, observe: recordLimits({ store, now }) });
  recordAssets(store, chains, now());
  const treasuryKeys = await openTreasuryKeys(chains);
  const parsed = withdrawalFile.safeParse(readJsonArgument(file), { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues("the file of the withdrawal", parsed.error));
  const checkChain = createChainCheck({ chains, log, now });
  const deps = {
    store,
    chains,
    checkChain,
    deployment,
    treasuryKeys,
    readLimits,
    log,
    metrics,
    now,
    caller: machineActor(),
  };
  const { ok, ...result } = await withdrawCapital(deps, parsed.data);
  const sent = "transaction" in result ? await sendWithdrawal(chains, { ...parsed.data, ...result }) : result;
  console.log(JSON.stringify(sent));
  if (!ok) process.exitCode = 1;
}

const [command = "serve", ...args] = process.argv.slice(2);
if (command === "--help") {
  console.log(usage);
  process.exit(0);
}
try {
  const config = readSignerConfig(process.env);
  const log = createLog({ level: config.LOG_LEVEL, role: "signer", context: readLogFields });
  if (command === "serve") await serve(config, log);
  else if (command === "init") createStore(config.SIGNER_STORE, { command, at: new Date() }).close();
  else if (command === "rebuild") await rebuild(config, log, args);
  else if (command === "withdraw") await withdraw(config, log, args);
  else if (command === "decide") decideFile(config, args);
  else if (command === "waiting") showWaiting(config);
  else if (command === "audit") runAuditCommand(config, args);
  else
    throw new ConfigError(
      `unknown command ${command}; expected serve, init, rebuild, withdraw, decide, waiting or audit`,
    );
} catch (error) {
  if (command === "serve") failToStart("signer", error);
  // The other commands are for people.
  console.error(error instanceof ConfigError ? error.message : describeBriefly(error));
  process.exit(1);
}
