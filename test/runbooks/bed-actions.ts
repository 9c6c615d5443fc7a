import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { privateKeyToAccount } from "viem/accounts";
import { createPayment, pay, type Shop } from "../../local/buyer-client.ts";
import { execute } from "../../local/execute-sql.ts";
import type { KeyPair } from "../../local/networks-document.ts";
import type { Role } from "../../local/service-process.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { queuePrefix } from "../../queues/queue-prefix.ts";
import type { TestBed } from "./test-bed.ts";

type End = () => Promise<unknown>;

/** Returns the merchant that pays live. */
export const shopOf = ({ stack }: TestBed): Shop => ({ baseUrl: stack.file().baseUrl, caller: stack.file().live });

/** Runs a statement as the owner of the database. */
export const sql = ({ stack }: TestBed, statement: string) => execute(stack.file().postgresUrl, statement);

let paid = 0;

/** Begins a payment of a buyer on EVM. Returns its id and the buyer. */
export async function beginOnEvm(bed: TestBed, cents = "500"): Promise<{ id: string; buyer: KeyPair }> {
  paid += 1;
  const { chain } = bed.stack;
  const buyer = chain.buyers[3 + (paid % 12)];
  if (!buyer) throw new Error("the stack has too few buyers");
  const id = await createPayment(shopOf(bed), { referenceId: `runbook ${paid}`, cents });
  await pay(shopOf(bed), id, privateKeyToAccount(buyer.privateKey), chain.id);
  return { id, buyer };
}

/** Waits until a query returns a row, and returns it. */
export async function waitForRow(bed: TestBed, query: string, withinMs = 30_000): Promise<Record<string, unknown>> {
  return await waitUntil(query, async () => (await sql(bed, query))[0], { withinMs, everyMs: 200 });
}

/** Waits until a payment has succeeded. */
export const waitForSuccess = (bed: TestBed, id: string) =>
  waitForRow(bed, `select 1 from payment where id = '${id}' and state = 'succeeded'`, 60_000);

/** Returns the id of the newest exception that is open. */
export async function findException(bed: TestBed): Promise<string> {
  const query = `select id from ledger_group g where kind in ('unmatched', 'exception', 'overpaid', 'dust') and not exists (
    select from ledger_group r where r.kind = 'exception_resolved' and r.subject = g.id::text) order by id desc limit 1`;
  return String((await waitForRow(bed, query))["id"]);
}

/** Stops a process without ending it. Returns what lets it go on. */
export function freeze(pid: number | undefined): End {
  if (!pid) throw new Error("the process does not run");
  process.kill(pid, "SIGSTOP");
  return async () => process.kill(pid, "SIGCONT");
}

/** Keeps a queue's jobs from being started. */
export async function pauseQueue({ stack }: TestBed, name: string): Promise<End> {
  const connection = new Redis(stack.file().redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(name, { connection, prefix: queuePrefix("pay", name) });
  await queue.pause();
  return async () => {
    await queue.resume();
    await queue.close();
    connection.disconnect();
  };
}

/** Replaces members of the signer's limits file. */
export const changeLimits = (bed: TestBed, change: Record<string, unknown>): Promise<End> =>
  changeFile(join(bed.stack.dir, "limits.jsonc"), (limits) => ({ ...limits, ...change }));

/** Replaces limits of the stack's first asset on EVM. */
export async function changeAssetLimits(bed: TestBed, change: Record<string, unknown>): Promise<End> {
  const { asset } = bed.stack.chain;
  return changeFile(join(bed.stack.dir, "limits.jsonc"), (limits) => {
    const assets = limits["assets"] as Record<string, object>;
    return { ...limits, assets: { ...assets, [asset]: { ...assets[asset], ...change } } };
  });
}

/** Replaces members of a chain's entry of the networks file, and restarts what reads it. */
export async function changeNetwork(bed: TestBed, chain: string, change: Record<string, unknown>): Promise<End> {
  const restore = await changeFile(join(bed.stack.dir, "networks.json"), (networks) => ({
    ...networks,
    chains: (networks["chains"] as { chain: string }[]).map((one) =>
      one.chain === chain ? { ...one, ...change } : one,
    ),
  }));
  const end = async () => {
    await restore();
    await restart(bed);
  };
  await restart(bed).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return end;
}

async function changeFile(
  file: string,
  change: (content: Record<string, unknown>) => Record<string, unknown>,
): Promise<End> {
  const before = await readFile(file, "utf8");
  await writeFile(file, JSON.stringify(change(JSON.parse(before)), null, 2));
  return () => writeFile(file, before);
}

/** Stops processes, does some work, and starts them again. Returns when they are ready. */
export async function whileStopped(bed: TestBed, roles: readonly Role[], work: End = async () => undefined) {
  const release = await bed.stack.hold(roles);
  await work();
  release();
  await waitReady(bed);
}

/** Restarts the workers, the api and the signer, as an operator does after a change of the networks file. */
export async function restart(bed: TestBed): Promise<void> {
  await bed.stack.restart();
  await waitReady(bed);
}

async function waitReady({ stack }: TestBed): Promise<void> {
  await pause(500);
  const isReady = async (url: string) => (await fetch(new URL("/readyz", url)).catch(() => undefined))?.ok === true;
  const areReady = async () => (await Promise.all(stack.file().metricsUrls.map(isReady))).every(Boolean);
  await waitUntil("all processes are ready", areReady, { withinMs: 60_000, everyMs: 200 });
}
