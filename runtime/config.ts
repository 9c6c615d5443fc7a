import { readFileSync } from "node:fs";
import { z } from "zod";
import { appSchemes } from "./app-schemes.ts";
import { type EncryptionKey, parseEncryptionKey } from "./encryption.ts";
import { errorCode } from "./redaction.ts";
import { parseRedisUrl, RedisUrlError } from "./redis-url.ts";
import { retentionDays } from "./retention-days.ts";
import { tracingVariables } from "./tracing/tracing-variables.ts";

/** A comma-separated list; empty items are dropped. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean),
);
const KEY_FORMAT = "expected name:key as `npm run admin -- data-keys new` writes it";
/** The public half of a key pair. */
const publicKey = z.string().transform((text, context): EncryptionKey => {
  const key = parseEncryptionKey(text);
  if (key) return key;
  context.addIssue(KEY_FORMAT);
  return z.NEVER;
});
/** Private halves, separated by commas or line breaks. */
const privateKeys = z.string().transform((text, context): EncryptionKey[] => {
  const parts = text.split(/[,\s]+/).filter(Boolean);
  const keys = parts.flatMap((part) => parseEncryptionKey(part) ?? []);
  const twice = keys.find(({ id }, index) => keys.findIndex((one) => one.id === id) < index);
  if (keys.length === parts.length && keys.length > 0 && !twice) return keys;
  context.addIssue(
    twice ? `two keys have the name ${twice.id}` : `${KEY_FORMAT}; several separated by commas or line breaks`,
  );
  return z.NEVER;
});
const port = z.coerce.number().int().min(0).max(65_535);

const databaseUrl = z.url({ protocol: /^postgres(ql)?$/ });
/** A URL as `parseRedisUrl` takes it. */
const redisUrl = z.string().superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (error) {
    if (!(error instanceof RedisUrlError)) throw error;
    context.addIssue(error.message);
  }
});

/** Variables that every process reads. Durations are in milliseconds. */
const common = {
  DATABASE_URL: databaseUrl,
  /** Most connections of this process; docs/operations.md shows how to size the sum over all processes. */
  DATABASE_POOL: z.coerce.number().int().min(1).max(100).default(10),
  REDIS_URL: redisUrl,
  /** The certificate authority of a `rediss:` server, in PEM; unset: the public ones. */
  REDIS_CA: z.string().includes("BEGIN CERTIFICATE", { error: "expected a certificate in PEM" }).optional(),
  /** Prefix of every Redis key and channel, so that several deployments can share a server. */
  REDIS_PREFIX: z
    .string()
    .regex(/^[a-z0-9_-]+$/i)
    .default("pay"),
  HOST: z.string().default("0.0.0.0"),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  /** 0 picks a free port; the log line "metrics listening" names it. */
  METRICS_PORT: port.default(9464),
};

/** Variables of processes that send requests to servers that callers name. */
const callerServices = {
  /** Allows logos and webhooks at private addresses, and webhooks and return URLs without TLS; for development. */
  ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
};

/** A page of the operator that the checkout page links to. */
const page = z.url({ protocol: /^https$/, normalize: true, error: "expected an https URL" }).optional();

/** The file that lists the accounts that are not served. */
const screeningList = z.string().min(1).optional();

const publicUrl = z.url({ protocol: /^https?$/ });

/** The files of a TLS connection that both sides authenticate: the CA of the other side, and the own certificate and key. */
const certificates = {
  SIGNER_CA_FILE: z.string().min(1).optional(),
  SIGNER_CERT_FILE: z.string().min(1).optional(),
  SIGNER_KEY_FILE: z.string().min(1).optional(),
};

/** Who signs payouts: `unix:/path` or `https://host:port` of the signer, or `embedded`. */
const signerTarget = {
  SIGNER: z
    .string()
    .regex(/^(embedded|unix:\/.+|https:\/\/.+)$/, "expected embedded, unix:/path or https://host:port")
    .optional(),
  ...certificates,
};

/** Receives the head of each day of an audit log: a file: URL, or an http(s) URL that is posted to. */
const auditSink = z.url({ protocol: /^(file|https?)$/ }).optional();

const Signer = z.object({
  ...tracingVariables,
  HOST: common.HOST,
  LOG_LEVEL: common.LOG_LEVEL,
  METRICS_PORT: common.METRICS_PORT,
  NETWORKS_FILE: z.string().min(1),
  /** `unix:/path` or `https://host:port`. */
  SIGNER_LISTEN: z.string().min(1),
  /** The SQLite file of the signer's own records. */
  SIGNER_STORE: z.string().min(1),
  SIGNER_LIMITS_FILE: z.string().min(1),
  AUDIT_SINK: auditSink,
  ...certificates,
});

const Api = z.object({
  ...common,
  ...tracingVariables,
  ...callerServices,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST_FILE: screeningList,
  /** One streaming replica, not an address of several, that serves lists and statements; unset: the primary serves them. */
  DATABASE_REPLICA_URL: databaseUrl.optional(),
  /** Encrypts buyer data, which the api cannot read. */
  BUYER_DATA_PUBLIC_KEY: publicKey,
  /** Encrypts the secrets of webhook endpoints, which the api cannot read afterwards. */
  WEBHOOK_PUBLIC_KEY: publicKey,
  PORT: port.default(8080),
  /** Address at which buyers and wallets reach the api; part of every payment link. */
  PUBLIC_URL: publicUrl,
  /** Linked beside the consent that buyers give, and at the foot of the checkout page. */
  TERMS_URL: page,
  PRIVACY_URL: page,
  /** Apps that the checkout page may return buyers to, when an app has opened it in its web view. */
  APP_SCHEMES: appSchemes,
  /** How long collected buyer data is kept, encrypted. */
  COLLECTED_DATA_DAYS: z.coerce.number().min(0).max(3_650).default(30),
  /** Requests per minute from one address and with one key; 0 disables the limit. */
  RATE_LIMIT_PER_ADDRESS: z.coerce.number().int().min(0).default(12_000),
  RATE_LIMIT_PER_KEY: z.coerce.number().int().min(0).default(12_000),
  /** Requests per minute from one address for one payment, from buyers' pages and on the gateway; 0 disables the limit. */
  RATE_LIMIT_PER_PAYMENT: z.coerce.number().int().min(0).default(600),
  /** Load balancers in front of the api, as addresses or CIDR ranges: only their X-Forwarded-For header is trusted. */
  TRUSTED_PROXIES: list.default([]),
});

const Worker = z.object({
  ...common,
  ...tracingVariables,
  ...callerServices,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST_FILE: screeningList,
  /** Decrypts webhook secrets. Only workers that deliver webhooks need it. */
  WEBHOOK_PRIVATE_KEYS: privateKeys.optional(),
  /** Where this worker checks the buyers' pages; unset: it does not check them. */
  PUBLIC_URL: publicUrl.optional(),
  /** Queues that this process consumes; all of them when unset. */
  WORKER_QUEUES: list.default([]),
  /** Only workers that pay out need it. */
  ...signerTarget,
  /** How long the process waits for running jobs after SIGTERM. */
  DRAIN_MS: z.coerce.number().int().min(0).default(45_000),
  AUDIT_SINK: auditSink,
  RETENTION_DAYS: retentionDays,
  /** A folder that gets the rows of history before they leave; unset: they are not exported. */
  RETENTION_EXPORT_FOLDER: z.string().min(1).optional(),
});

const Board = z.object({
  ...common,
  PORT: port.default(8081),
  /** Decrypts the operators' TOTP secrets. */
  TOTP_PRIVATE_KEYS: privateKeys,
  /** Proxies in front of bull-board, as for the api: they name the caller's address and say that it used TLS. */
  TRUSTED_PROXIES: list.default([]),
});

const Migrate = z.object({ DATABASE_URL: common.DATABASE_URL });

/** Variables of the command line. Only commands that encrypt or decrypt need keys, and some need no database. */
const Admin = z.object({
  DATABASE_URL: common.DATABASE_URL.optional(),
  NETWORKS_FILE: z.string().min(1).optional(),
  BUYER_DATA_PUBLIC_KEY: publicKey.optional(),
  BUYER_DATA_PRIVATE_KEYS: privateKeys.optional(),
  WEBHOOK_PUBLIC_KEY: publicKey.optional(),
  WEBHOOK_PRIVATE_KEYS: privateKeys.optional(),
  TOTP_PUBLIC_KEY: publicKey.optional(),
  TOTP_PRIVATE_KEYS: privateKeys.optional(),
  ALLOW_PRIVATE_ADDRESSES: callerServices.ALLOW_PRIVATE_ADDRESSES,
  PUBLIC_URL: publicUrl.optional(),
  SCREENING_LIST_FILE: screeningList,
  ...signerTarget,
  /** The name that the audit log records for each action. */
  OPERATOR: z.string().min(1).max(64).default("operator"),
});

/** Variables of preflight, which runs before there is a database. */
const Preflight = z.object({
  SCREENING_LIST_FILE: screeningList,
  /** With these it tells the workers' machine from the signer's. */
  SIGNER: signerTarget.SIGNER,
  SIGNER_LISTEN: Signer.shape.SIGNER_LISTEN.optional(),
});

export type ApiConfig = Readonly<z.infer<typeof Api>>;
export type WorkerConfig = Readonly<z.infer<typeof Worker>>;
export type SignerConfig = Readonly<z.infer<typeof Signer>>;
/** Where a worker reaches the signer. */
export type SignerTarget = Pick<WorkerConfig, keyof typeof signerTarget>;
export type BoardConfig = Readonly<z.infer<typeof Board>>;

/** Thrown at start only. The message names each invalid variable and what is wrong with it, and never contains a value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Returns a message that names each invalid member and what was expected. Values are left out, as they may be secret. */
export function describeIssues(where: string, error: z.ZodError): string {
  const lines = error.issues.map(({ path, message }) => {
    const problem = message.endsWith("received undefined") ? "is missing" : message;
    return `  ${path.join(".") || "(whole)"}: ${problem}`;
  });
  return `${where} is invalid:\n${lines.join("\n")}`;
}

/**
 * Returns the variables with these names. A variable that is not set is read from the file that `NAME_FILE` names, without
 * the line break at its end: passwords and keys then appear in no environment, which child processes and crash reports
 * contain. An empty variable counts as not set, because compose files and shells write it so.
 */
function readVariables(names: readonly string[], env: NodeJS.ProcessEnv): Record<string, string> {
  const read = (name: string): string | undefined => {
    const [value, file] = [env[name] || undefined, env[`${name}_FILE`] || undefined];
    if (file === undefined) return value;
    if (value !== undefined) throw new ConfigError(`${name} and ${name}_FILE are both set; set one`);
    try {
      return readFileSync(file, "utf8").replace(/\r?\n$/, "");
    } catch (error) {
      throw new ConfigError(`${name}_FILE: ${file} cannot be read (${errorCode(error)})`);
    }
  };
  return Object.fromEntries(names.flatMap((name) => [[name, read(name)] as const].filter(isSet)));
}

const isSet = (entry: readonly [string, string | undefined]): entry is readonly [string, string] =>
  entry[1] !== undefined && entry[1] !== "";

function parse<T extends z.ZodRawShape>(schema: z.ZodObject<T>, env: NodeJS.ProcessEnv) {
  const given = readVariables(Object.keys(schema.shape), env);
  const parsed = schema.safeParse(given, { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues("the environment", parsed.error));
  return Object.freeze(parsed.data);
}

/** These functions read and check the environment of a process once, at start. They throw ConfigError. */
export const readApiConfig = (env: NodeJS.ProcessEnv): ApiConfig => parse(Api, env);
export const readWorkerConfig = (env: NodeJS.ProcessEnv): WorkerConfig => parse(Worker, env);
export const readSignerConfig = (env: NodeJS.ProcessEnv): SignerConfig => parse(Signer, env);
export const readBoardConfig = (env: NodeJS.ProcessEnv): BoardConfig => parse(Board, env);
export const readAdminConfig = (env: NodeJS.ProcessEnv): Readonly<z.infer<typeof Admin>> => parse(Admin, env);
export const readMigrateConfig = (env: NodeJS.ProcessEnv): Readonly<z.infer<typeof Migrate>> => parse(Migrate, env);
export const readPreflightConfig = (env: NodeJS.ProcessEnv): Readonly<z.infer<typeof Preflight>> =>
  parse(Preflight, env);
