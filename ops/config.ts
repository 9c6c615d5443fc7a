import { z } from "zod";
import { appSchemes } from "./app-schemes.ts";
import type { DataKey } from "./sealer.ts";

/** A comma list, blanks dropped. */
const list = z.string().transform((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean),
);
/** `id:base64` of 32 bytes, several by commas: the first seals, the others still open. */
const dataKeys = z.string().transform((text, context) => {
  const keys = text.split(",").map((part) => {
    const [id = "", encoded = ""] = part.trim().split(":", 2);
    return { id, key: Buffer.from(encoded, "base64") };
  });
  const [first, ...rest] = keys;
  if (first && keys.every(({ id, key }) => /^[\w-]{1,32}$/.test(id) && key.length === 32))
    return [first, ...rest] as [DataKey, ...DataKey[]];
  context.addIssue("expected name:key, the key being 32 bytes in base64 (openssl rand -base64 32); several by commas");
  return z.NEVER;
});
const port = z.coerce.number().int().min(0).max(65_535);

/** What every process reads. Durations in milliseconds. */
const common = {
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  /** Connections this process may hold; see docs/operations.md for the sum over a fleet. */
  DATABASE_POOL: z.coerce.number().int().min(1).max(100).default(10),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }),
  /** Put before every Redis key and channel, so that several deployments can share a server. */
  REDIS_PREFIX: z
    .string()
    .regex(/^[a-z0-9_-]+$/i)
    .default("pay"),
  HOST: z.string().default("0.0.0.0"),
  LOG_LEVEL: z.enum(["fatal", "error", "warn", "info", "debug", "trace", "silent"]).default("info"),
  /** 0 takes a free port; the log line "metrics listening" names it. */
  METRICS_PORT: port.default(9464),
};

/** What touches callers' secrets, or servers they name. */
const outward = {
  /** Encrypts collected data and webhook secrets at rest. */
  DATA_KEYS: dataKeys,
  /** For development: logos and webhooks may be at private addresses, webhooks also without TLS. */
  ALLOW_PRIVATE_ADDRESSES: z.stringbool().default(false),
};

/** Where the operator says something to buyers; a page links to it. */
const page = z.url({ protocol: /^https$/, normalize: true, error: "expected an https URL" }).optional();

/** A file of accounts that are not served. */
const screeningList = z.string().min(1).optional();

const publicUrl = z.url({ protocol: /^https?$/ });

const Api = z.object({
  ...common,
  ...outward,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST: screeningList,
  PORT: port.default(8080),
  /** Where buyers and wallets reach us; becomes part of every payment link. */
  PUBLIC_URL: publicUrl,
  /** Shown beside the consent that buyers give, and under the checkout page. */
  TERMS_URL: page,
  PRIVACY_URL: page,
  /** Apps that the checkout page may lead back to, where one has opened it in its web view. */
  APP_SCHEMES: appSchemes,
  /** How long what buyers had to say of themselves is kept, encrypted. */
  COLLECTED_DATA_DAYS: z.coerce.number().min(0).max(3_650).default(30),
  /** Requests a minute from one address and with one key; 0 for no limit. */
  RATE_LIMIT_PER_ADDRESS: z.coerce.number().int().min(0).default(12_000),
  RATE_LIMIT_PER_KEY: z.coerce.number().int().min(0).default(12_000),
  /** Requests a minute from one address for one payment, by buyers' pages and on the gateway; 0 for no limit. */
  RATE_LIMIT_PER_PAYMENT: z.coerce.number().int().min(0).default(600),
  /** Load balancers before us, addresses or CIDR ranges: only they may say who the caller is (X-Forwarded-For). */
  TRUSTED_PROXIES: list.default([]),
});

const Worker = z.object({
  ...common,
  ...outward,
  NETWORKS_FILE: z.string().min(1),
  SCREENING_LIST: screeningList,
  /** Where the buyers' pages are looked at; nowhere when unset. */
  PUBLIC_URL: publicUrl.optional(),
  /** Queues this process serves; all of them when unset. */
  WORKER_QUEUES: list.default([]),
  /** How long SIGTERM waits for running jobs. */
  DRAIN_MS: z.coerce.number().int().min(0).default(45_000),
});

const Board = z.object({
  ...common,
  PORT: port.default(8081),
  ADMIN_USER: z.string().min(1).default("operator"),
  ADMIN_PASSWORD: z.string().min(12),
});

const Migrate = z.object({ DATABASE_URL: common.DATABASE_URL });

/** The command line; the keys only where something is sealed or opened. */
const Admin = Migrate.extend({
  NETWORKS_FILE: z.string().min(1).optional(),
  DATA_KEYS: dataKeys.optional(),
  ALLOW_PRIVATE_ADDRESSES: outward.ALLOW_PRIVATE_ADDRESSES,
  PUBLIC_URL: publicUrl.optional(),
  /** Who is written down beside what was done. */
  OPERATOR: z.string().min(1).max(64).default("operator"),
});

export type ApiConfig = Readonly<z.infer<typeof Api>>;
export type WorkerConfig = Readonly<z.infer<typeof Worker>>;
export type BoardConfig = Readonly<z.infer<typeof Board>>;

/** Thrown at start only. Names what is wrong with which variable and never holds a value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Names each bad member and what was expected of it; the value itself may be a secret and is left out. */
export function describeIssues(where: string, error: z.ZodError): string {
  const lines = error.issues.map(({ path, message }) => {
    const said = message.endsWith("received undefined") ? "is missing" : message;
    return `  ${path.join(".") || "(whole)"}: ${said}`;
  });
  return `${where} is not usable:\n${lines.join("\n")}`;
}

function parse<T>(schema: z.ZodType<T>, env: NodeJS.ProcessEnv): Readonly<T> {
  // An empty variable means "not set", as compose files and shells write it.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = schema.safeParse(given, { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues("the environment", parsed.error));
  return Object.freeze(parsed.data);
}

/** Each reads and checks the environment once, at start. Throws ConfigError. */
export const readApiConfig = (env: NodeJS.ProcessEnv): ApiConfig => parse(Api, env);
export const readWorkerConfig = (env: NodeJS.ProcessEnv): WorkerConfig => parse(Worker, env);
export const readBoardConfig = (env: NodeJS.ProcessEnv): BoardConfig => parse(Board, env);
export const readAdminConfig = (env: NodeJS.ProcessEnv): Readonly<z.infer<typeof Admin>> => parse(Admin, env);
export const readMigrateConfig = (env: NodeJS.ProcessEnv): Readonly<z.infer<typeof Migrate>> => parse(Migrate, env);
