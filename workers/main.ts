import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type { Worker } from "bullmq";
import { Registry } from "prom-client";
import { lookAtPages } from "../api/checkout/probe.ts";
import { signatureEngine } from "../chains/evm/signature.ts";
import { type EvmKeys, openEvmKeys } from "../chains/evm/signers/open.ts";
import { isTransientChainError } from "../chains/faults.ts";
import { checkChain, getChain, openChains } from "../chains/open.ts";
import { openSolanaKeys, type SolanaKeys } from "../chains/solana/signers.ts";
import { type Clock, createClock, isTrusted, keepMeasured } from "../db/clock.ts";
import { isMigrated } from "../db/migrate.ts";
import { openDb } from "../db/open.ts";
import { ConfigError, readWorkerConfig, type WorkerConfig } from "../ops/config.ts";
import { createLog } from "../ops/log.ts";
import { readLogFields, withLogFields, withoutLogFields } from "../ops/log-context.ts";
import { createMetrics } from "../ops/metrics.ts";
import { readKey, readNetworks, readSecret, readText } from "../ops/networks.ts";
import { createOutward } from "../ops/outward.ts";
import { samplePool, watchStatements } from "../ops/pool-metrics.ts";
import { startProbes } from "../ops/probes.ts";
import { describeBriefly } from "../ops/redaction.ts";
import { openScreeningList } from "../ops/screening-list.ts";
import { createSealer } from "../ops/sealer.ts";
import { createShutdown, installSignals } from "../ops/shutdown.ts";
import { findAnyPayment } from "../payments/checkout.ts";
import type { PaymentDeps } from "../payments/deps.ts";
import { createAnnounce } from "../queues/announce.ts";
import { isQueueName, queueNames } from "../queues/catalog.ts";
import { openPatientRedis, openRedis } from "../queues/connection.ts";
import { consume, type Handler } from "../queues/consume.ts";
import { createEpochMemory } from "../queues/epoch-memory.ts";
import { openRing } from "../queues/ring.ts";
import { openEpoch } from "../transfers/epoch.ts";
import { watchGasMoney } from "../transfers/gas.ts";
import { startTransfers } from "../transfers/start.ts";
import { createVerifier } from "../transfers/verify.ts";
import { fillGauges } from "./gauges.ts";
import { createHandlers } from "./handlers.ts";
import { createPagesCheck } from "./pages.ts";
import { startChains } from "./start-chains.ts";
import { createJudge } from "./trouble.ts";

/** How often each worker process rings the sweep, milliseconds; together they run one a second. */
const SWEEP_EVERY_MS = 1_000;
/** How often a process that waits for its clock checks it, milliseconds. */
const CLOCK_CHECK_MS = 200;
/** How often each worker process compares the database with what it has seen of it, milliseconds. */
const COUNT_EVERY_MS = 1_000;

async function work(config: WorkerConfig): Promise<void> {
  const served = config.WORKER_QUEUES.length === 0 ? queueNames : config.WORKER_QUEUES.filter(isQueueName);
  const unknown = config.WORKER_QUEUES.filter((name) => !isQueueName(name));
  if (unknown.length > 0)
    throw new ConfigError(
      `WORKER_QUEUES names no queue of ours: ${unknown.join(", ")}; there are ${queueNames.join(", ")}`,
    );
  const networks = readNetworks(config.NETWORKS_FILE);

  const log = createLog({ level: config.LOG_LEVEL, role: "worker", context: readLogFields });
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });
  const registry = new Registry();
  const metrics = createMetrics(registry, "worker");
  const db = openDb(config.DATABASE_URL, {
    max: config.DATABASE_POOL,
    applicationName: "pay-worker",
    ...watchStatements(metrics, log),
  });
  shutdown.onClose("database", () => db.destroy());
  shutdown.onClose("pool metrics", samplePool(db, metrics));
  const onRedisError = (err: Error) => log.warn({ err }, "redis connection");
  const redis = openRedis(config.REDIS_URL, onRedisError);
  shutdown.onClose("redis", () => redis.disconnect());
  const { ring, queues, close } = openRing({
    redis,
    prefix: config.REDIS_PREFIX,
    log,
    metrics,
    requestId: () => readLogFields().requestId,
  });
  shutdown.onClose("queues", close);

  const clock = createClock(db);
  const { now } = clock;
  /** What this process has on, to be stopped while its clock is not to be trusted. */
  let workers: readonly Worker[] = [];
  let trusted = true;
  const onMeasured = () => {
    metrics.clockSkew.set({ against: "postgres" }, (clock.skewMs() ?? 0) / 1_000);
    if (trusted === isTrusted(clock)) return;
    trusted = !trusted;
    const facts = { aheadMs: Math.round(clock.skewMs() ?? 0) };
    if (trusted) log.info(facts, "this machine's clock agrees with Postgres' again");
    else log.error(facts, "this machine's clock and Postgres' differ too much: no job is taken until they agree");
    for (const worker of workers) trusted ? worker.resume() : void worker.pause(true);
  };
  const onClockError = (err: unknown) => log.warn({ err }, "Postgres could not be asked for the time");
  let started = false;
  const probes = await startProbes({
    host: config.HOST,
    port: config.METRICS_PORT,
    registry,
    isDraining: () => shutdown.signal.aborted,
    ready: async () => {
      const migrated = await isMigrated(db).catch(() => false);
      const checks = { started, migrated, redis: redis.status === "ready", clock: isTrusted(clock) };
      return { ok: Object.values(checks).every(Boolean), checks };
    },
  });
  shutdown.onClose("probes", () => probes.close());
  shutdown.onClose("clock", await keepMeasured(clock, { measured: onMeasured, error: onClockError }));
  const chains = openChains(networks, metrics);
  fillGauges({ db, chains, queues, metrics, now });
  log.info({ port: probes.port, served, signatureEngine }, "metrics listening");
  if (signatureEngine === "javascript")
    log.warn("secp256k1 has no compiled bindings here: signatures are verified in JavaScript, ten times slower");

  await waitForClock(clock, shutdown.signal);
  const owner = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const announce = createAnnounce(redis, config.REDIS_PREFIX);
  const list = config.SCREENING_LIST;
  const screeningList = list ? openScreeningList(list, { log, now }) : () => new Set<string>();
  const verifier = createVerifier({ db, chains, screeningList, metrics, now });
  const isTransient = createJudge(isTransientChainError);
  const keys = new Map<string, EvmKeys>();
  const solanaKeys = new Map<string, SolanaKeys>();
  const epoch = openEpoch({ db, memory: createEpochMemory(redis, config.REDIS_PREFIX), log });
  const deps = {
    db,
    chains,
    networks,
    deployment: networks.deployment,
    keys,
    solanaKeys,
    owner,
    verifier,
    screeningList,
    ring,
    announce,
    sealer: createSealer(config.DATA_KEYS),
    outward: createOutward({ allowPrivate: config.ALLOW_PRIVATE_ADDRESSES }),
    log,
    metrics,
    now,
    isTransient,
    outOfContext: withoutLogFields,
    startedAt: now(),
    epoch,
  };
  const startDeps = { log, isTransient, signal: shutdown.signal, onFault: stop };
  const startedChains = await startChains(startDeps, chains.keys(), async (chain) => {
    const opened = getChain(chains, chain);
    if (opened.family === "evm") keys.set(chain, await openEvmKeys(opened.network, { readKey, readSecret, readText }));
    else solanaKeys.set(chain, openSolanaKeys(opened.network, readSecret));
    await checkChain(chains, chain);
    await startTransfers(deps, chain);
  });
  if (shutdown.signal.aborted) return;

  const handlers = createHandlers({ ...deps, startedChains, checkPages: openPagesCheck(deps, config.PUBLIC_URL) });
  const connect = () => {
    const connection = openPatientRedis(config.REDIS_URL, onRedisError);
    shutdown.onClose("queue connection", () => connection.disconnect());
    return connection;
  };
  const options = {
    connect,
    prefix: config.REDIS_PREFIX,
    signal: shutdown.signal,
    isTransient,
    describe: describeBriefly,
    inContext: withLogFields,
    log,
    metrics,
  };
  workers = served.map((name) => consume(name, handlers[name] as Handler<typeof name>, options));
  const drain = { boundMs: config.DRAIN_MS };
  shutdown.onClose("jobs", () => Promise.all(workers.map((worker) => worker.close())), drain);
  const timer = setInterval(
    () => void ring("sweep", [{ data: { at: Math.floor(now().getTime() / SWEEP_EVERY_MS) } }]),
    SWEEP_EVERY_MS,
  );
  shutdown.onClose("sweep timer", () => clearInterval(timer));
  const counting = setInterval(() => void epoch.tick().catch((err) => log.warn({ err }, "epoch")), COUNT_EVERY_MS);
  shutdown.onClose("epoch timer", () => clearInterval(counting));
  if (served.includes("watch-chain")) shutdown.onClose("gas money", watchGasMoney(deps));
  started = true;
  log.info({ served }, "working");
  // A release that has just come is looked at once, and not only when its turn comes.
  await ring("check-pages", [{ data: { at: Math.floor(now().getTime() / 1000) } }]);
}

/** Resolves when the clock may be trusted, or the process is to stop. */
async function waitForClock(clock: Clock, signal: AbortSignal): Promise<void> {
  while (!isTrusted(clock) && !signal.aborted)
    await pause(CLOCK_CHECK_MS, undefined, { signal }).catch(() => undefined);
}

/** The look at the buyers' pages from outside, as buyers have them; none without an address. */
function openPagesCheck(
  deps: Omit<Parameters<typeof createPagesCheck>[0], "look"> & Pick<PaymentDeps, "db">,
  publicUrl: string | undefined,
): () => Promise<void> {
  if (publicUrl === undefined) {
    deps.log.warn("PUBLIC_URL is not set: this process does not look at the buyers' pages");
    return async () => undefined;
  }
  // The operator says where, also in a network of his own.
  const ask = createOutward({ allowPrivate: true });
  const look = async () => lookAtPages({ ask }, { publicUrl, paymentId: await findAnyPayment(deps) });
  return createPagesCheck({ ...deps, look });
}

/** What is wrong with the configuration, or with a chain behind it, is said for a person to read. */
function stop(error: unknown): never {
  console.error(error instanceof ConfigError ? error.message : describeBriefly(error));
  process.exit(1);
}

await work(readWorkerConfig(process.env)).catch(stop);
