import { z } from "zod";
import { appSchemes } from "./app-schemes.ts";
import type { DataKey } from "./encryption.ts";

/** A comma-separated list; empty items are dropped. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean),
);
/** `id:key`, the key being 32 bytes in base64; several separated by commas. The first encrypts, the others only decrypt. */
const dataKeys = z.string().transform((text, context): [DataKey, ...DataKey[]] => {
  const keys = text.split(",").map((part) => {
    const [id = "", encoded = ""] = part.trim().split(":", 2);
    return { id, key: Buffer.from(encoded, "base64") };
  });
  const [first, ...rest] = keys;
  if (first && keys.every(({ id, key }) => /^[\w-]{1,32}$/.test(id) && key.length === 32)) return [first, ...rest];
  context.addIssue(
    "expected name:key, the key being 32 bytes in base64 (openssl rand -base64 32); several separated by commas",
  );
  return z.NEVER;
});
const port = z.coerce.number().int().min(0).max(65_535);

/** Variables that every process reads. Durations are in milliseconds. */
const common = {
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  /** Most connections of this process; docs/operations.md shows how to size the sum over all processes. */
  DATABASE_POOL: z.coerce.number().int().min(1).max(100).default(10),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }),
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

/** Variables of processes that handle callers' secrets or send requests to servers that callers name. */
const callerServices = {
  /** Encrypts collected data and webhook secrets at rest. */
  DATA_KEYS: dataKeys,
  /** Allows logos and webhooks at private addresses, and webhooks without TLS; for development. */
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

const Signer = z.object({
  HOST: common.HOST,
  LOG_LEVEL: common.LOG_LEVEL,
  METRICS_PORT: common.METRICS_PORT,
  NETWORKS_FILE: z.string().min(1),
  /** `unix:/path` or `https://host:port`. */
  SIGNER_LISTEN: z.string().min(1),
  /** The SQLite file of the signer's own records. */
  SIGNER_STORE: z.string().min(1),
  SIGNER_LIMITS_FILE: z.string().min(1),
  ...certificates,
});

const Api = z.object({
  ...common,
  ...callerServices,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST_FILE: screeningList,
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
  ...callerServices,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST_FILE: screeningList,
  /** Where this worker checks the buyers' pages; unset: it does not check them. */
  PUBLIC_URL: publicUrl.optional(),
  /** Queues that this process consumes; all of them when unset. */
  WORKER_QUEUES: list.default([]),
  /** Only workers that pay out need it. */
  ...signerTarget,
  /** How long the process waits for running jobs after SIGTERM. */
  DRAIN_MS: z.coerce.number().int().min(0).default(45_000),
});

const Board = z.object({
  ...common,
  PORT: port.default(8081),
  ADMIN_USER: z.string().min(1).default("operator"),
  ADMIN_PASSWORD: z.string().min(12),
});

const Migrate = z.object({ DATABASE_URL: common.DATABASE_URL });

/** Variables of the command line. Only commands that encrypt or decrypt need DATA_KEYS. */
const Admin = Migrate.extend({
  NETWORKS_FILE: z.string().min(1).optional(),
  DATA_KEYS: dataKeys.optional(),
  ALLOW_PRIVATE_ADDRESSES: callerServices.ALLOW_PRIVATE_ADDRESSES,
  PUBLIC_URL: publicUrl.optional(),
  ...signerTarget,
  /** The name that the audit log records for each action. */
  OPERATOR: z.string().min(1).max(64).default("operator"),
});

/** Variables of preflight, which runs before there is a database. */
const Preflight = z.object({ SCREENING_LIST_FILE: screeningList });

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

function parse<T>(schema: z.ZodType<T>, env: NodeJS.ProcessEnv): Readonly<T> {
  // Compose files and shells write an unset variable as an empty one.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
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
