import { z } from "zod";
import { ConfigError, describeIssues } from "../runtime/config.ts";
import { freePair, freePort, isFree } from "./free-ports.ts";

const port = z.coerce.number().int().min(1).max(65_535);

const Settings = z.object({
  /** Folder of the stack file, the logs and the data. */
  STACK_DIR: z.string().min(1).default(".local"),
  PORT: port.default(8080),
  ADMIN_PORT: port.default(8081),
  /** Metrics port of the api; those of the workers and bull-board follow it. */
  METRICS_PORT: port.default(9464),
  ANVIL_PORT: port.default(8545),
  /** Where the service reaches Anvil, such as a proxy that counts; Anvil's own URL when unset. */
  EVM_RPC_URL: z.url().optional(),
  /** A further endpoint of the EVM chain, asked after the first. */
  EVM_SECOND_RPC_URL: z.url().optional(),
  /** Lets Anvil make thousands of empty blocks in seconds; see AnvilOptions. */
  ANVIL_MANY_BLOCKS: z.stringbool().default(false),
  /** WebSockets use the next port. */
  SOLANA_PORT: port.default(8899),
  /** Where the service reaches Solana, such as a proxy that counts; its own URL when unset. */
  SOLANA_PROXY_URL: z.url().optional(),
  /** Milliseconds between the local Solana's slots. */
  SOLANA_SLOT_MS: z.coerce.number().int().min(10).default(400),
  WORKERS: z.coerce.number().int().min(0).max(32).default(2),
  /** `embedded` runs no signer: the workers hold the treasury's keys. */
  SIGNER: z.enum(["process", "embedded"]).default("process"),
  LANES: z.coerce.number().int().min(1).max(16).default(2),
  BUYERS: z.coerce.number().int().min(20).max(10_000).default(20),
  /** Starts a Postgres of its own with a replica, from which the api reads lists. */
  REPLICA: z.stringbool().default(false),
  /** Tokens on Anvil that buyers hold and the merchant is paid in. */
  TOKENS: z.coerce.number().int().min(1).max(8).default(1),
  /** Seconds between blocks; a block per transaction when unset. */
  ANVIL_BLOCK_TIME: z.coerce.number().int().min(1).optional(),
  LOG_LEVEL: z.string().default("info"),
});

export type StackSettings = Readonly<z.infer<typeof Settings>>;

/** Reads the settings of the local stack. Throws ConfigError. */
export function readSettings(env: NodeJS.ProcessEnv): StackSettings {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const parsed = Settings.safeParse(given, { reportInput: false });
  if (!parsed.success) throw new ConfigError(describeIssues("the environment", parsed.error));
  return Object.freeze(parsed.data);
}

/** Returns the settings with free ports, so that the stack can run beside another one. */
export async function withFreePorts(settings: StackSettings): Promise<StackSettings> {
  const [api, admin, anvil] = [await freePort(), await freePort(), await freePort()];
  const own = { PORT: api, ADMIN_PORT: admin, ANVIL_PORT: anvil, SOLANA_PORT: await freePair() };
  return { ...settings, ...own, METRICS_PORT: await freeRange(settings) };
}

/** Returns the first of as many consecutive free ports as the stack has processes with metrics. */
async function freeRange(settings: StackSettings): Promise<number> {
  for (;;) {
    const first = await freePort();
    const range = metricsPorts({ ...settings, METRICS_PORT: first });
    if ((await Promise.all(range.map(isFree))).every(Boolean)) return first;
  }
}

/** Returns the metrics ports of the api, of each worker, of bull-board and of the signer, if there is one. */
export function metricsPorts({ METRICS_PORT, WORKERS, SIGNER }: StackSettings): number[] {
  return Array.from({ length: WORKERS + (SIGNER === "process" ? 3 : 2) }, (_, index) => METRICS_PORT + index);
}
