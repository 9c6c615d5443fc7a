import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { isAlive } from "./scratch-folder.ts";

const url = z.string();
const hex = z.string().regex(/^0x[0-9a-fA-F]+$/);
const caller = z.object({ apiKey: z.string(), appId: z.string(), merchantId: z.string() });
const pid = z.number().int();

/** The content of stack.json. Tools rely on this shape. */
const StackFile = z.object({
  baseUrl: url,
  adminUrl: url,
  metricsUrls: z.array(url),
  postgresUrl: url,
  redisUrl: url,
  live: caller,
  test: caller,
  evm: z.object({
    chain: z.string(),
    rpcUrl: url,
    asset: z.string(),
    token: hex,
    treasury: hex,
    relayers: z.array(hex),
    destination: z.string(),
    buyers: z.array(z.object({ address: hex, privateKey: hex })),
  }),
  solana: z.object({
    chain: z.string(),
    rpcUrl: url,
    asset: z.string(),
    mint: z.string(),
    treasury: z.string(),
    destination: z.string(),
    /** The secret is base58 of 64 bytes, as wallets export it. */
    buyers: z.array(z.object({ address: z.string(), secretKey: z.string() })),
  }),
  /** Process ids; a service in a container or at a configured URL has none. */
  processes: z.object({
    supervisor: pid,
    api: z.array(pid),
    workers: z.array(pid),
    signer: z.array(pid),
    postgres: pid.optional(),
    redis: pid.optional(),
    anvil: pid.optional(),
    solana: pid.optional(),
  }),
});

export type StackFile = z.infer<typeof StackFile>;

const fileIn = (dir: string): string => join(dir, "stack.json");

/** Writes stack.json atomically. Only the user can read it, because it contains keys. */
export async function writeStackFile(dir: string, content: StackFile): Promise<void> {
  await mkdir(dir, { recursive: true });
  const fresh = `${fileIn(dir)}.${process.pid}.new`;
  await writeFile(fresh, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(fresh, fileIn(dir));
}

/** Returns the stack that runs in this folder, or undefined. A file whose supervisor is dead is ignored. */
export async function findRunningStack(dir: string): Promise<StackFile | undefined> {
  const text = await readFile(fileIn(dir), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const parsed = StackFile.safeParse(JSON.parse(text));
  return parsed.success && isAlive(parsed.data.processes.supervisor) ? parsed.data : undefined;
}

/** Writes the environment file that `npm run admin` reads. */
export async function writeEnvironment(dir: string, variables: Record<string, string>): Promise<void> {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(dir, "env"), lines.join(""), { mode: 0o600 });
}

/** Removes stack.json and the environment file when the stack stops. */
export async function removeStackFile(dir: string): Promise<void> {
  await rm(fileIn(dir), { force: true });
  await rm(join(dir, "env"), { force: true });
}
