import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Role as DatabaseRole } from "../db/grants/roles.ts";
import { newEncryptionKeys } from "../runtime/encryption.ts";
import type { RedisRole } from "./redis-users.ts";
import type { ProcessOptions } from "./service-process.ts";
import { prepareSigner } from "./signer-files.ts";
import { writeEnvironment } from "./stack-file.ts";
import { metricsPorts, type StackSettings } from "./stack-settings.ts";

/** How long a process may drain when it is stopped, milliseconds. */
export const drainMs = 8_000;

type Parts = {
  settings: StackSettings;
  dir: string;
  /** Returns the URL by which a role connects to the database. */
  urlOf: (role: DatabaseRole) => string;
  /** The URL of the replica that the api reads lists from. */
  replicaUrl: string | undefined;
  /** Returns the URL by which a role connects to Redis, and the prefix of all keys. */
  redis: { urlOf: (role: RedisRole) => string; prefix: string };
  networksFile: string;
  /** Environment variables with the private keys. */
  keys: Record<string, string>;
  /** The key pair of the operators' TOTP secrets. */
  totpKeys: { publicKey: string; privateKey: string };
};

/** Returns the settings of each process of the service. Workers get the keys of the lanes, the signer those of the treasury. */
export async function describeProcesses({
  settings,
  dir,
  urlOf,
  replicaUrl,
  redis,
  networksFile,
  keys,
  totpKeys,
}: Parts): Promise<ProcessOptions[]> {
  const { PORT, ADMIN_PORT, WORKERS, LOG_LEVEL } = settings;
  const logs = join(dir, "logs");
  await rm(logs, { recursive: true, force: true });
  await mkdir(logs, { recursive: true });
  // The database is deleted with the stack, so new keys for each run can decrypt everything in it.
  const buyerData = await newEncryptionKeys("local");
  const webhooks = await newEncryptionKeys("local");
  const addresses = { ALLOW_PRIVATE_ADDRESSES: process.env["ALLOW_PRIVATE_ADDRESSES"] ?? "true" };
  const publicUrl = { PUBLIC_URL: `http://127.0.0.1:${PORT}` };
  const { SCREENING_LIST_FILE } = process.env;
  const screening = SCREENING_LIST_FILE ? { SCREENING_LIST_FILE: resolve(SCREENING_LIST_FILE) } : {};
  const common = { REDIS_PREFIX: redis.prefix, ...addresses, ...screening, LOG_LEVEL, NETWORKS_FILE: networksFile };
  const [apiMetrics = 0, ...others] = metricsPorts(settings);
  const signerMetrics = settings.SIGNER === "process" ? (others.pop() ?? 0) : 0;
  const boardMetrics = others.pop() ?? 0;
  const logTo = (name: string) => {
    const stream = createWriteStream(join(logs, `${name}.log`), { flags: "a" });
    return (line: string) => void stream.write(`${line}\n`);
  };
  // Every caller has the address 127.0.0.1, and benchmarks send as many requests as they can.
  const { RATE_LIMIT_PER_ADDRESS = "0", RATE_LIMIT_PER_KEY = "0" } = process.env;
  const limits = { RATE_LIMIT_PER_ADDRESS, RATE_LIMIT_PER_KEY };
  const isTreasuryKey = ([name]: [string, string]) => name.includes("TREASURY");
  const laneKeys = Object.fromEntries(Object.entries(keys).filter((entry) => !isTreasuryKey(entry)));
  const treasuryKeys = Object.fromEntries(Object.entries(keys).filter(isTreasuryKey));
  const isEmbedded = settings.SIGNER === "embedded";
  const signer = isEmbedded ? undefined : await prepareSigner(dir, networksFile);
  const SIGNER = signer?.address ?? "embedded";
  await writeEnvironment(dir, {
    DATABASE_URL: urlOf("admin"),
    NETWORKS_FILE: networksFile,
    SIGNER,
    BUYER_DATA_PRIVATE_KEYS: buyerData.privateKey,
    WEBHOOK_PUBLIC_KEY: webhooks.publicKey,
    TOTP_PUBLIC_KEY: totpKeys.publicKey,
    ...addresses,
    ...publicUrl,
  });
  const AUDIT_SINK = pathToFileURL(join(dir, "audit-heads.jsonl")).href;
  const worker = {
    ...common,
    DATABASE_URL: urlOf("worker"),
    REDIS_URL: redis.urlOf("worker"),
    ...publicUrl,
    ...(isEmbedded ? keys : laneKeys),
    SIGNER,
    WEBHOOK_PRIVATE_KEYS: webhooks.privateKey,
    AUDIT_SINK,
    DRAIN_MS: String(drainMs),
  };
  const board = {
    ...common,
    DATABASE_URL: urlOf("board"),
    REDIS_URL: redis.urlOf("board"),
    TOTP_PRIVATE_KEYS: totpKeys.privateKey,
  };
  const signing: ProcessOptions[] = signer
    ? [
        {
          role: "signer",
          metricsPort: signerMetrics,
          env: { ...signer.env, ...treasuryKeys, LOG_LEVEL, AUDIT_SINK },
          onLine: logTo("signer"),
        },
      ]
    : [];
  return [
    ...signing,
    {
      role: "api",
      port: PORT,
      metricsPort: apiMetrics,
      env: {
        ...common,
        DATABASE_URL: urlOf("api"),
        ...(replicaUrl === undefined ? {} : { DATABASE_REPLICA_URL: replicaUrl }),
        REDIS_URL: redis.urlOf("api"),
        ...publicUrl,
        ...limits,
        BUYER_DATA_PUBLIC_KEY: buyerData.publicKey,
        WEBHOOK_PUBLIC_KEY: webhooks.publicKey,
      },
      onLine: logTo("api"),
    },
    ...others.slice(0, WORKERS).map((metricsPort, index): ProcessOptions => {
      return { role: "worker", metricsPort, env: worker, onLine: logTo(`worker-${index}`) };
    }),
    { role: "bull-board", port: ADMIN_PORT, metricsPort: boardMetrics, env: board, onLine: logTo("bull-board") },
  ];
}
