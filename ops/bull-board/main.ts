import { Registry } from "prom-client";
import { releaseVersion, watchSchema } from "../../db/check-schema.ts";
import { createClock, keepMeasured } from "../../db/clock.ts";
import { openDb } from "../../db/open.ts";
import { recordRetry } from "../../payments/operators/sign-in.ts";
import { describeJob } from "../../queues/describe-job.ts";
import { openJobQueues } from "../../queues/enqueue.ts";
import { openRedis } from "../../queues/redis-connections.ts";
import { setBuildInfo } from "../../runtime/build-info.ts";
import { type BoardConfig, readBoardConfig } from "../../runtime/config.ts";
import { createDecrypt } from "../../runtime/encryption.ts";
import { createLog } from "../../runtime/log.ts";
import { instrumentStatements, samplePool } from "../../runtime/metrics/pool-metrics.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import { startProbes } from "../../runtime/probes.ts";
import { createShutdown, installSignals } from "../../runtime/shutdown.ts";
import { failToStart } from "../../runtime/start-failure.ts";
import { buildBoard } from "./board.ts";

async function serve(config: BoardConfig): Promise<void> {
  const log = createLog({ level: config.LOG_LEVEL, role: "bull-board" });
  const shutdown = createShutdown({ log });
  installSignals(shutdown, { log });

  const registry = new Registry();
  const metrics = createMetrics(registry, "bull-board");
  setBuildInfo(metrics, process.env, releaseVersion);
  const db = openDb(config.DATABASE_URL, {
    max: Math.min(config.DATABASE_POOL, 4),
    applicationName: "pay-bull-board",
    // Some searches read a whole table. One that takes longer would keep logins waiting.
    statementTimeoutMs: 5_000,
    ...instrumentStatements(metrics, log),
  });
  shutdown.onClose("database", () => db.destroy());
  shutdown.onClose("pool metrics", samplePool(db, metrics));
  const redis = openRedis(config.REDIS_URL, (err) => log.warn({ err }, "redis connection"), config.REDIS_CA);
  shutdown.onClose("redis", () => redis.disconnect());
  const { queues, close } = openJobQueues({ redis, prefix: config.REDIS_PREFIX, log, metrics });
  shutdown.onClose("queues", close);

  const isSchemaReady = watchSchema(db, log);
  const state = { listening: false };
  const probes = await startProbes({
    host: config.HOST,
    port: config.METRICS_PORT,
    registry,
    isDraining: () => shutdown.signal.aborted,
    ready: async () => {
      const migrated = await isSchemaReady().catch(() => false);
      const checks = { migrated, redis: redis.status === "ready", listening: state.listening };
      return { ok: Object.values(checks).every(Boolean), checks };
    },
  });
  shutdown.onClose("probes", () => probes.close());
  log.info({ port: probes.port }, "metrics listening");

  const clock = createClock(db);
  const onClockError = (err: unknown) => log.warn({ err }, "Postgres could not be asked for the time");
  shutdown.onClose("clock", await keepMeasured(clock, { measured: () => undefined, error: onClockError }));
  const board = await buildBoard({
    db,
    now: clock.now,
    decryptTotpSecret: createDecrypt(config.TOTP_PRIVATE_KEYS),
    queues,
    describeJob,
    deployment: config.REDIS_PREFIX,
    trustedProxies: config.TRUSTED_PROXIES,
    recordRetry: (token, retried) => recordRetry({ db }, token, retried),
    log,
    metrics,
  });
  shutdown.onClose("board", () => board.close());
  log.info({ url: await board.listen({ host: config.HOST, port: config.PORT }) }, "listening");
  state.listening = true;
}

try {
  await serve(readBoardConfig(process.env));
} catch (error) {
  failToStart("bull-board", error);
}
