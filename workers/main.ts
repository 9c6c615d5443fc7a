import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { Registry } from "prom-client";
import type { Chains } from "../chains/chain.ts";
import { signatureEngine } from "../chains/evm/signature.ts";
import type { EvmKeys } from "../chains/evm/signers/open-evm-keys.ts";
import { checkChain, closeChains, getChain, openChains } from "../chains/open-chains.ts";
import type { PayoutSigner } from "../chains/payout-signer.ts";
import type { SolanaKeys } from "../chains/solana/open-solana-keys.ts";
import { releaseVersion, watchSchema } from "../db/check-schema.ts";
import { type Clock, createClock, isTrusted, keepMeasured } from "../db/clock.ts";
import { openDb } from "../db/open.ts";
import { listOpenRows } from "../db/queries/open-rows.ts";
import type { Pool } from "../db/tables.ts";
import { createAssetUnits } from "../payments/asset-units.ts";
import { isTransient } from "../payments/is-transient.ts";
import { findAnyPayment } from "../payments/lifecycle/checkout-view.ts";
import { watchNativePrices } from "../payments/options/native-prices.ts";
import { isQueueName, type QueueName, queueNames } from "../queues/catalog.ts";
import { type Enqueue, openJobQueues } from "../queues/enqueue.ts";
import { createEpochStore } from "../queues/epoch-store.ts";
import { createPaymentChangePublisher } from "../queues/payment-changes.ts";
import { openRedis, openRetryingRedis, type RedisClient } from "../queues/redis-connections.ts";
import { openAuditSink } from "../runtime/audit-sink.ts";
import { setBuildInfo } from "../runtime/build-info.ts";
import { ConfigError, readWorkerConfig, type WorkerConfig } from "../runtime/config.ts";
import { createDecrypt } from "../runtime/encryption.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { readLogFields, withLogFields, withoutLogFields } from "../runtime/log-context.ts";
import { instrumentStatements, samplePool } from "../runtime/metrics/pool-metrics.ts";
import { createMetrics, type Metrics } from "../runtime/metrics.ts";
import { type Networks, readKey, readNetworks, readSecret, readText } from "../runtime/networks/read-networks.ts";
import { type Readiness, startProbes } from "../runtime/probes.ts";
import { describeWithCode } from "../runtime/redaction.ts";
import { checkReleasedPages } from "../runtime/released-pages/check-released-pages.ts";
import { createSafeFetch } from "../runtime/safe-fetch.ts";
import { openScreeningList } from "../runtime/screening-list.ts";
import { createShutdown, installSignals, type Shutdown } from "../runtime/shutdown.ts";
import { failToStart } from "../runtime/start-failure.ts";
import { startTracing } from "../runtime/tracing/start-tracing.ts";
import { createKeylessSigner, openSigner } from "../signer/open-signer.ts";
import { openTreasuryKey } from "../signer/open-treasury-keys.ts";
import { openEpoch } from "../transfers/database-epoch.ts";
import { getTransferDriver } from "../transfers/find-transfer-driver.ts";
import { reportNetworks } from "../transfers/report-networks.ts";
import { startTransfers } from "../transfers/start-transfers.ts";
import type { LaneFunds } from "../transfers/transfer-driver.ts";
import { createVerifier } from "../transfers/verifier.ts";
import { watchGasBalances } from "../transfers/watch-gas-balances.ts";
import { watchIssuers } from "../transfers/watch-issuers.ts";
import { createPagesCheck } from "./check-pages.ts";
import { createClockGate } from "./clock-gate.ts";
import { fillGauges } from "./fill-gauges.ts";
import { createHandlers } from "./handlers.ts";
import { findNeeds } from "./queue-keys.ts";
import { removeRecoveredJobs } from "./recovered-jobs.ts";
import { serve } from "./serve-queues.ts";
import { startChains } from "./start-chains.ts";
import { startRetention, startTimers } from "./timers.ts";

/** How often a process that waits for its clock or for the schema checks them, milliseconds. */
const START_CHECK_MS = 200;

type Opened = { config: WorkerConfig; networks: Networks; log: Log; metrics: Metrics; shutdown: Shutdown };

async function work(config: WorkerConfig): Promise<void> {
  const served = readServed(config.WORKER_QUEUES);
  if ((served.includes("deliver-webhook") || served.includes("deliver-slow-webhook")) && !config.WEBHOOK_PRIVATE_KEYS)
    throw new ConfigError("WEBHOOK_PRIVATE_KEYS is missing: this worker delivers webhooks");
  const networks = readNetworks(config.NETWORKS_FILE);
  const log = createLog({ level: config.LOG_LEVEL, role: "worker", context: readLogFields });
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });
  const registry = new Registry();
  const metrics = createMetrics(registry, "worker");
  setBuildInfo(metrics, process.env, releaseVersion);
  const opened: Opened = { config, networks, log, metrics, shutdown };
  await startTracing(config, { role: "worker", log, metrics, shutdown });

  const db = openDatabase(opened);
  const { redis, enqueue, queues } = openProducer(opened);
  const clock = createClock(db);
  const gate = createClockGate({ clock, isTrusted: () => isTrusted(clock), metrics, log });
  const state = { started: false, listShort: (): LaneFunds[] => [] };
  const isSchemaReady = watchSchema(db, log);
  const probes = await startProbes({
    host: config.HOST,
    port: config.METRICS_PORT,
    registry,
    isDraining: () => shutdown.signal.aborted,
    ready: createReadiness({ redis, clock, isSchemaReady }, state),
  });
  shutdown.onClose("probes", () => probes.close());
  const onClockError = (err: unknown) => log.warn({ err }, "Postgres could not be asked for the time");
  shutdown.onClose("clock", await keepMeasured(clock, { measured: gate.update, error: onClockError }));
  const chains = openChains(networks, metrics);
  shutdown.onClose("chains", () => closeChains(chains));
  // The start counts as a sweep: no alert may say that a fleet which has just started sweeps no more.
  if (served.includes("sweep")) metrics.sweepLastRun.set(clock.now().getTime() / 1000);
  fillGauges({ db, chains, queues, metrics, now: clock.now, startedAt: clock.now() });
  log.info({ port: probes.port, served, signatureEngine }, "metrics listening");
  if (signatureEngine === "javascript")
    log.warn(
      "no compiled secp256k1 bindings for this platform: signatures are verified in JavaScript, ten times slower",
    );
  await waitUntilTrue(async () => isTrusted(clock), shutdown.signal);
  // Statements of this release would fail halfway through a job, or write what a later release does not expect.
  await waitUntilTrue(() => isSchemaReady().catch(() => false), shutdown.signal);

  const deps = createDeps(opened, { db, redis, enqueue, chains, clock, served });
  shutdown.onClose("signer", () => deps.signer.close());
  shutdown.onClose("networks", reportNetworks(deps));
  if (served.includes("watch-chain")) {
    // Before the chains start: a lane without native money can keep a chain from starting.
    const gas = watchGasBalances(deps);
    state.listShort = gas.listShort;
    shutdown.onClose("gas balances", gas.stop);
    shutdown.onClose("native prices", watchNativePrices(deps));
  }
  const startedChains = await startEachChain(opened, deps, served);
  if (shutdown.signal.aborted) return;

  const handlers = createHandlers({ ...deps, startedChains, checkPages: openPagesCheck(deps, config.PUBLIC_URL) });
  const connect = () => {
    const connection = openRetryingRedis(
      config.REDIS_URL,
      (err) => log.warn({ err }, "redis connection"),
      config.REDIS_CA,
    );
    shutdown.onClose("queue connection", () => connection.disconnect());
    return connection;
  };
  const workers = serve(served, handlers, {
    connect,
    prefix: config.REDIS_PREFIX,
    signal: shutdown.signal,
    isTransient: deps.isTransient,
    describe: describeWithCode,
    inContext: withLogFields,
    log,
    metrics,
  });
  gate.guard(workers);
  shutdown.onClose("jobs", () => Promise.all(workers.map((worker) => worker.close())), { timeoutMs: config.DRAIN_MS });
  if (!config.AUDIT_SINK) log.warn("AUDIT_SINK is not set: the heads of the audit log are kept only in the database");
  if (served.includes("sweep")) {
    const listOpen = (rows: readonly string[]) => listOpenRows(db, rows);
    shutdown.onClose("failed jobs", removeRecoveredJobs({ queues, listOpen, log, now: clock.now }));
    startRetention(shutdown, deps, { days: config.RETENTION_DAYS, exportFolder: config.RETENTION_EXPORT_FOLDER });
  }
  startTimers(shutdown, { ...deps, auditSink: config.AUDIT_SINK ? openAuditSink(config.AUDIT_SINK) : undefined });
  if (served.includes("watch-chain")) shutdown.onClose("issuers", watchIssuers(deps));
  state.started = true;
  log.info({ served }, "working");
  // Checks the pages right after a deployment, before the first regular check.
  await enqueue("check-pages", [{ data: { at: Math.floor(clock.now().getTime() / 1000) } }]);
}

/** Returns the queues that this process serves, all by default. Throws ConfigError for an unknown name. */
function readServed(names: readonly string[]): readonly QueueName[] {
  const unknown = names.filter((name) => !isQueueName(name));
  if (unknown.length > 0)
    throw new ConfigError(
      `WORKER_QUEUES has unknown queues: ${unknown.join(", ")}; the queues are ${queueNames.join(", ")}`,
    );
  return names.length === 0 ? queueNames : names.filter(isQueueName);
}

function openDatabase({ config, log, metrics, shutdown }: Opened): Pool {
  const db = openDb(config.DATABASE_URL, {
    max: config.DATABASE_POOL,
    applicationName: "pay-worker",
    ...instrumentStatements(metrics, log),
  });
  shutdown.onClose("database", () => db.destroy());
  shutdown.onClose("pool metrics", samplePool(db, metrics));
  return db;
}

/** Opens the connection and the queues for enqueuing jobs. */
function openProducer({ config, log, metrics, shutdown }: Opened) {
  const redis = openRedis(config.REDIS_URL, (err) => log.warn({ err }, "redis connection"), config.REDIS_CA);
  shutdown.onClose("redis", () => redis.disconnect());
  const requestId = () => readLogFields().requestId;
  const { enqueue, queues, close } = openJobQueues({ redis, prefix: config.REDIS_PREFIX, log, metrics, requestId });
  shutdown.onClose("queues", close);
  return { redis, enqueue, queues };
}

function createReadiness(
  { redis, clock, isSchemaReady }: { redis: RedisClient; clock: Clock; isSchemaReady: () => Promise<boolean> },
  state: { started: boolean; listShort: () => LaneFunds[] },
): () => Promise<Readiness> {
  return async () => {
    const migrated = await isSchemaReady().catch(() => false);
    const checks = { started: state.started, migrated, redis: redis.status === "ready", clock: isTrusted(clock) };
    const lanesWithoutGas = state
      .listShort()
      .map((lane) => ({ ...lane, balance: String(lane.balance), needs: String(lane.needs) }));
    const ok = Object.values(checks).every(Boolean);
    return lanesWithoutGas.length > 0 ? { ok, checks, lanesWithoutGas } : { ok, checks };
  };
}

/** Resolves when a check returns true, or when the process stops. */
async function waitUntilTrue(check: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  while (!(await check()) && !signal.aborted) await pause(START_CHECK_MS, undefined, { signal }).catch(() => undefined);
}

/** Creates the dependencies of all handlers. The keys of a chain are added when the chain starts. */
function createDeps(
  { config, networks, log, metrics }: Opened,
  {
    db,
    redis,
    enqueue,
    chains,
    clock,
    served,
  }: {
    db: Pool;
    redis: RedisClient;
    enqueue: Enqueue;
    chains: Chains;
    clock: Clock;
    served: readonly QueueName[];
  },
) {
  const { now } = clock;
  const list = config.SCREENING_LIST_FILE;
  const screeningList = list ? openScreeningList(list, { log, now }) : () => new Set<string>();
  const treasuryKeys = new Map<string, PayoutSigner>();
  const { deployment } = networks;
  const paysOut = [...chains.keys()].some((chain) => findNeeds(served, chain).has("signer"));
  const of = { chains, deployment, log };
  const signer = paysOut ? openSigner(config, { ...of, treasuryKeys }) : createKeylessSigner(of);
  if (paysOut && config.SIGNER !== "embedded") metrics.signerLogCompared.set(now().getTime() / 1000);
  return {
    db,
    chains,
    networks,
    assetUnits: createAssetUnits(db),
    deployment,
    treasuryKeys,
    signer,
    keys: new Map<string, EvmKeys>(),
    solanaKeys: new Map<string, SolanaKeys>(),
    owner: `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
    verifier: createVerifier({ db, chains, screeningList, metrics, now }),
    screeningList,
    enqueue,
    publishPaymentChanges: createPaymentChangePublisher(redis, config.REDIS_PREFIX),
    decryptWebhookSecret: createDecrypt(config.WEBHOOK_PRIVATE_KEYS ?? []),
    safeFetch: createSafeFetch({ allowPrivate: config.ALLOW_PRIVATE_ADDRESSES }),
    log,
    metrics,
    now,
    isTransient,
    withoutRequestContext: withoutLogFields,
    startedAt: now(),
    epoch: openEpoch({ db, memory: createEpochStore(redis, config.REDIS_PREFIX), log }),
  };
}

type Deps = ReturnType<typeof createDeps>;

/** Opens the keys of each chain that the served queues need, compares the chain with the networks file and creates its rows. */
function startEachChain(
  { config, log, shutdown }: Opened,
  deps: Deps,
  served: readonly QueueName[],
): Promise<ReadonlySet<string>> {
  const { chains, isTransient } = deps;
  return startChains(
    { log, isTransient, signal: shutdown.signal, onError: (error) => failToStart("worker", error) },
    chains.keys(),
    async (id) => {
      const needs = findNeeds(served, id);
      const chain = getChain(chains, id);
      if (needs.has("lanes")) await getTransferDriver(chain).openKeys(deps, { readKey, readSecret, readText });
      if (needs.has("treasury") && config.SIGNER === "embedded")
        deps.treasuryKeys.set(id, await openTreasuryKey(chain));
      await checkChain(chains, id);
      await startTransfers(deps, id);
    },
  );
}

/** Opens the check of the buyers' pages. Returns a check that does nothing when PUBLIC_URL is not set. */
function openPagesCheck(deps: Deps, publicUrl: string | undefined): () => Promise<void> {
  if (publicUrl === undefined) {
    deps.log.warn("PUBLIC_URL is not set: this process does not check the buyers' pages");
    return async () => undefined;
  }
  // The operator sets the address, which can be in a private network.
  const ask = createSafeFetch({ allowPrivate: true });
  const check = async () => checkReleasedPages({ ask }, { publicUrl, paymentId: await findAnyPayment(deps) });
  return createPagesCheck({ ...deps, check });
}

try {
  await work(readWorkerConfig(process.env));
} catch (error) {
  failToStart("worker", error);
}
