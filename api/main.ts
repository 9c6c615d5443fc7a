import { setImmediate as acceptPending, setTimeout as pause } from "node:timers/promises";
import pRetry from "p-retry";
import { Registry } from "prom-client";
import type { Chains } from "../chains/chain.ts";
import { ChainError } from "../chains/errors.ts";
import { checkChain, openChains } from "../chains/open-chains.ts";
import { releaseVersion, watchSchema } from "../db/check-schema.ts";
import { type Clock, createClock, isTrusted, keepMeasured } from "../db/clock.ts";
import { isReachable, openDb } from "../db/open.ts";
import { openReadReplica, REPLICA_READ_MS, replicaOutcomes } from "../db/read-replica.ts";
import type { Pool } from "../db/tables.ts";
import { createAssetUnits } from "../payments/asset-units.ts";
import { createListLimits } from "../payments/lifecycle/list-limits.ts";
import { createCredentialCache } from "../payments/merchants/credential-cache.ts";
import { createKeyUses, type KeyUses } from "../payments/merchants/key-uses.ts";
import { createLogoJobs } from "../payments/merchants/logo-jobs.ts";
import { openJobQueues } from "../queues/enqueue.ts";
import { createPaymentChangePublisher, paymentChanges } from "../queues/payment-changes.ts";
import { openRedis, openSubscriber } from "../queues/redis-connections.ts";
import { setBuildInfo } from "../runtime/build-info.ts";
import { type ApiConfig, readApiConfig } from "../runtime/config.ts";
import { createEncrypt } from "../runtime/encryption.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { readLogFields, withLogFields } from "../runtime/log-context.ts";
import { instrumentStatements, samplePool } from "../runtime/metrics/pool-metrics.ts";
import { createMetrics, type Metrics } from "../runtime/metrics.ts";
import { type Networks, readNetworks } from "../runtime/networks/read-networks.ts";
import { type Readiness, startProbes } from "../runtime/probes.ts";
import { createSafeFetch, validateUrl } from "../runtime/safe-fetch.ts";
import { openScreeningList } from "../runtime/screening-list.ts";
import { createShutdown, installSignals, type Shutdown } from "../runtime/shutdown.ts";
import { failToStart } from "../runtime/start-failure.ts";
import { startTracing } from "../runtime/tracing/start-tracing.ts";
import { createLimits } from "./http/rate-limits.ts";
import { createRequestLog } from "./http/request-log.ts";
import { type WatchDeps, watchPayments } from "./polling/watch-payments.ts";
import { buildServer } from "./server.ts";

/** Time after SIGTERM in which new connections are still served, until load balancers send no more, milliseconds. */
const LAST_REQUESTS_MS = 2_000;
/** Time that running requests then have to finish, milliseconds. Long polls have been answered by then. */
const CLOSE_MS = 10_000;

/** The interval at which the uses of API keys are stored, milliseconds. */
const STORE_KEY_USES_MS = 10_000;

type Opened = { config: ApiConfig; log: Log; metrics: Metrics; shutdown: Shutdown };

async function serve(config: ApiConfig, networks: Networks): Promise<void> {
  const log = createLog({ level: config.LOG_LEVEL, role: "api", context: readLogFields });
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });
  const registry = new Registry();
  const metrics = createMetrics(registry, "api");
  setBuildInfo(metrics, process.env, releaseVersion);
  const opened: Opened = { config, log, metrics, shutdown };
  await startTracing(config, { role: "api", log, metrics, shutdown });
  const state = { listening: false };

  const db = openDatabase(opened);
  const clock = createClock(db);
  const onMeasured = () => metrics.clockSkew.set({ against: "postgres" }, (clock.skewMs() ?? 0) / 1_000);
  const onClockError = (err: unknown) => log.warn({ err }, "cannot read the time from Postgres");
  const readiness = {
    isDraining: () => shutdown.signal.aborted,
    ready: createReadiness({ db, clock, isSchemaReady: watchSchema(db, log) }, () => state.listening),
  };
  const probes = await startProbes({ host: config.HOST, port: config.METRICS_PORT, registry, ...readiness });
  shutdown.onClose("probes", () => probes.close());
  log.info({ port: probes.port }, "metrics listening");
  shutdown.onClose("clock", await keepMeasured(clock, { measured: onMeasured, error: onClockError }));

  const redis = openRedis(config.REDIS_URL, (err) => log.warn({ err }, "redis connection failed"), config.REDIS_CA);
  shutdown.onClose("redis", () => redis.disconnect());
  const { enqueue, close } = openJobQueues({
    redis,
    prefix: config.REDIS_PREFIX,
    log,
    metrics,
    requestId: () => readLogFields().requestId,
  });
  shutdown.onClose("queues", close);
  const publishPaymentChanges = createPaymentChangePublisher(redis, config.REDIS_PREFIX);

  const chains = openChains(networks, metrics);
  for (const chain of chains.keys()) checkInBackground(opened, chains, chain);
  const encryptBuyerData = createEncrypt(config.BUYER_DATA_PUBLIC_KEY);
  const encryptWebhookSecret = createEncrypt(config.WEBHOOK_PUBLIC_KEY);
  const addresses = { allowPrivate: config.ALLOW_PRIVATE_ADDRESSES };
  const safeFetch = createSafeFetch(addresses);
  const { now } = clock;
  const list = config.SCREENING_LIST_FILE;
  const screeningList = list ? openScreeningList(list, { log, now }) : () => new Set<string>();
  const domain = {
    screeningList,
    db,
    chains,
    networks,
    assetUnits: createAssetUnits(db),
    enqueue,
    publishPaymentChanges,
    encryptBuyerData,
    encryptWebhookSecret,
    safeFetch,
    validateUrl: (url: string) => validateUrl(addresses, url),
    log,
    metrics,
    now,
  };
  const { waiters, statuses } = openWatched(opened, domain);

  const limits = createLimits(
    { redis, prefix: config.REDIS_PREFIX, metrics, now },
    {
      perAddress: config.RATE_LIMIT_PER_ADDRESS,
      perKey: config.RATE_LIMIT_PER_KEY,
      perPayment: config.RATE_LIMIT_PER_PAYMENT,
    },
  );
  const keyUses = createKeyUses({ db, now, log });
  shutdown.onClose("key uses", storePeriodically(keyUses));
  const collectedDataMs = config.COLLECTED_DATA_DAYS * 24 * 60 * 60_000;
  const requestLog = createRequestLog({ redis, prefix: config.REDIS_PREFIX, now });
  const settings = {
    limits,
    requestLog,
    keyUses,
    logoJobs: createLogoJobs(),
    runList: createListLimits(config.DATABASE_POOL),
    credentials: createCredentialCache(),
    readiness,
    collectedDataMs,
    trustedProxies: config.TRUSTED_PROXIES,
    inContext: withLogFields,
  };
  const publicUrl = config.PUBLIC_URL.replace(/\/+$/, "");
  const legal = { termsUrl: config.TERMS_URL, privacyUrl: config.PRIVACY_URL };
  const app = buildServer({
    ...domain,
    replica: openReplica(opened, db),
    waiters,
    statuses,
    ...settings,
    publicUrl,
    legal,
    appSchemes: config.APP_SCHEMES,
  });
  const drain = async () => {
    waiters.drain();
    await pause(LAST_REQUESTS_MS);
    // Timers run before connections are accepted: closing now would reset those that have arrived meanwhile.
    await acceptPending();
    await app.close();
  };
  shutdown.onClose("server", drain, { timeoutMs: LAST_REQUESTS_MS + CLOSE_MS });
  log.info({ url: await app.listen({ host: config.HOST, port: config.PORT }) }, "listening");
  state.listening = true;
}

function openDatabase({ config, log, metrics, shutdown }: Opened) {
  const db = openDb(config.DATABASE_URL, {
    max: config.DATABASE_POOL,
    applicationName: "pay-api",
    ...instrumentStatements(metrics, log),
  });
  shutdown.onClose("database", () => db.destroy());
  shutdown.onClose("pool metrics", samplePool(db, metrics));
  return db;
}

/**
 * Opens the replica of lists and statements, if one is configured. Readiness ignores it, because the primary serves them while
 * it is away.
 */
function openReplica({ config, log, metrics, shutdown }: Opened, primary: Pool) {
  if (config.DATABASE_REPLICA_URL === undefined) return undefined;
  const replica = openDb(config.DATABASE_REPLICA_URL, {
    max: config.DATABASE_POOL,
    applicationName: "pay-api-replica",
    statementTimeoutMs: REPLICA_READ_MS,
    acceptsStandby: true,
    ...instrumentStatements(metrics, log),
  });
  shutdown.onClose("replica", () => replica.destroy());
  const address = new URL(config.DATABASE_REPLICA_URL).host;
  // A counter that appears only with its first read has no rate for it.
  for (const outcome of replicaOutcomes) metrics.replicaReads.inc({ outcome }, 0);
  const reads = openReadReplica({
    primary,
    replica,
    onRead(outcome, err) {
      metrics.replicaReads.inc({ outcome });
      if (err)
        log[outcome === "failed" ? "warn" : "info"]({ err, outcome, address }, "the primary repeats a replica's read");
    },
    onLag: (seconds) => metrics.replicaLagSeconds.set({ serves: "lists" }, seconds),
    onChange(isUsed, err) {
      if (isUsed) log.info({ address }, "the replica serves lists and statements");
      else log.warn({ err, address }, "the replica is behind or unavailable; the primary serves lists and statements");
    },
  });
  shutdown.onClose("replica lag", reads.close);
  return reads;
}

/** Stores the uses of API keys periodically, and once more when the returned function is called. */
function storePeriodically(keyUses: KeyUses): () => Promise<void> {
  const timer = setInterval(() => void keyUses.store(), STORE_KEY_USES_MS);
  return () => {
    clearInterval(timer);
    return keyUses.store();
  };
}

/**
 * Returns the readiness probe. It checks neither Redis nor RPC: a short outage there would take every replica out of
 * service.
 */
function createReadiness(
  { db, clock, isSchemaReady }: { db: Pool; clock: Clock; isSchemaReady: () => Promise<boolean> },
  isListening: () => boolean,
): () => Promise<Readiness> {
  return async () => {
    const postgres = await isReachable(db);
    const migrated = postgres && (await isSchemaReady());
    const checks = { postgres, migrated, listening: isListening(), clock: isTrusted(clock) };
    return { ok: Object.values(checks).every(Boolean), checks };
  };
}

/**
 * Compares the networks file with the chain. A mismatch ends the process; an endpoint that is down does not, since only
 * options need one.
 */
function checkInBackground({ log, shutdown }: Opened, chains: Chains, chain: string): void {
  pRetry(() => checkChain(chains, chain), {
    retries: Number.POSITIVE_INFINITY,
    maxTimeout: 5_000,
    signal: shutdown.signal,
    shouldRetry: ({ error }) => error instanceof ChainError && error.transient,
    onFailedAttempt: ({ error }) => log.warn({ err: error, chain }, "networks file not compared with its chain yet"),
  }).catch((err: unknown) => {
    if (shutdown.signal.aborted) return;
    log.fatal({ err, chain }, "networks file does not match its chain");
    process.exit(1);
  });
}

/** Subscribes in the background: without Redis the API still serves, and finds changes once a second. */
function openWatched({ config, log, shutdown }: Opened, domain: Omit<WatchDeps, "subscriber" | "prefix">) {
  const subscriber = openSubscriber(
    config.REDIS_URL,
    paymentChanges(config.REDIS_PREFIX),
    (err) => log.warn({ err }, "redis subscription failed"),
    config.REDIS_CA,
  );
  shutdown.onClose("redis subscription", () => subscriber.disconnect());
  const watched = watchPayments({ ...domain, subscriber, prefix: config.REDIS_PREFIX });
  shutdown.onClose("payment watches", watched.close);
  watched.subscription.subscribed.catch((err: unknown) => {
    if (!shutdown.signal.aborted) log.warn({ err }, "cannot subscribe to payment changes");
  });
  return watched;
}

try {
  const config = readApiConfig(process.env);
  await serve(config, readNetworks(config.NETWORKS_FILE));
} catch (error) {
  failToStart("api", error);
}
