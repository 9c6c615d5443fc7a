import { execFile } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import {
  archiveCurrentWal,
  archiveWal,
  copyData,
  destroyData,
  removeBackup,
  restoreToTime,
} from "../../local/postgres-backup.ts";
import type { Progress } from "../../local/progress.ts";
import { MAX_PRIORITY_FEE } from "../../local/solana-entry.ts";
import { tokenAccountOf } from "../../local/spl-tokens.ts";
import type { Stack } from "../../local/stack.ts";
import { waitUntil } from "../../local/wait-until.ts";
import { listContradictions, readRows } from "../faults/database-rows.ts";
import { scanChain } from "../faults/evm-scan.ts";
import { listTreasuryMovements } from "../faults/list-movements.ts";
import { type Evidence, findViolations } from "../faults/payment-invariants.ts";
import { scanSolana } from "../faults/solana-scan.ts";
import { waitUntilIdle } from "../faults/wait-until-idle.ts";
import { execute } from "../support/execute-sql.ts";
import { scrape } from "../support/scrape.ts";
import { type DrillShop, EVERY_MS, openShop } from "./drill-shop.ts";
import { type DrillLine, describeForgotten } from "./forgotten-rows.ts";
import { openAdmin, type Resolution, resolveExceptions } from "./resolve-exceptions.ts";

const run = promisify(execFile);

/** Payments that have succeeded before the base backup, and how long payments go on afterwards, in seconds. */
export type DrillOptions = { payments: number; recoverable: number; lost: number };

export type DrillResult = {
  lines: DrillLine[];
  /** One sentence for each thing that is lost, doubled or unexplained. */
  violations: string[];
  /** The output of `npm run reconcile`. */
  reconciliation: string;
};

/** Backs up a stack under load, destroys and restores it, and resolves what the restored database has forgotten. */
export async function runDrill(stack: Stack, options: DrillOptions, { say, print }: Progress): Promise<DrillResult> {
  const { postgres } = stack;
  const since = Number(await stack.chain.client.getBlockNumber());
  say("switching WAL archiving on, which restarts Postgres");
  const backup = await archiveWal(postgres);
  const shop = openShop(stack);
  try {
    say(`waiting for ${options.payments} payments`);
    const isBusy = () => shop.succeeded() >= options.payments;
    // Twice the time that the shop takes to create them, and two minutes for the first and the last ones.
    const withinMs = 120_000 + 2 * EVERY_MS * options.payments;
    await waitUntil("enough payments have succeeded", isBusy, { withinMs });
    await waitUntil("the lanes' capital is booked", () => isCapitalBooked(postgres.url), { withinMs: 60_000 });
    say("taking a base backup while payments go on");
    await copyData(postgres.url, backup.base);
    await pause(options.recoverable * 1_000);
    const [moment, from] = [new Date(), performance.now()];
    // Recovery stops at the first commit after the moment.
    await pause(1_500);
    await archiveCurrentWal(postgres, backup);
    print(`The restore will go back to ${moment.toISOString()}.`);
    await pause(options.lost * 1_000);

    say("destroying everything: Postgres with its disk, Redis, every process");
    const before = await readRows(postgres.url);
    await destroyData(postgres, backup);
    const destroyedAt = new Date();
    const startApi = await stack.hold(["api"], 0);
    const startOthers = await stack.hold(["worker", "signer", "bull-board"], 0);
    await flush(stack.redis.url);
    const seconds = ((destroyedAt.getTime() - moment.getTime()) / 1_000).toFixed(1);
    print(`Destroyed at ${destroyedAt.toISOString()}: ${seconds} s of commits are not in the backup.`);
    await shop.close();

    say("restoring the base backup and the archived WAL");
    await restoreToTime(postgres, backup, moment);
    const restored = await readRows(postgres.url);
    say("starting the signer, the workers and bull-board, without the api");
    startOthers();
    await waitUntil("every chain has been read again", () => isReread(stack), { withinMs: 120_000, everyMs: 250 });
    say("opening the api");
    startApi();
    shop.history.lost.push({ from, to: performance.now() });

    say("resolving the exceptions");
    return await resolveAndCheck({ stack, shop, snapshots: { before, restored }, since });
  } finally {
    await shop.close();
    await removeBackup(backup);
  }
}

/** Has the workers compare the lanes with the ledger at once. Returns true when the capital of each chain's lanes is booked. */
async function isCapitalBooked(databaseUrl: string): Promise<boolean> {
  await execute(databaseUrl, "update chain_cursor set reconcile_at = now()");
  const missing =
    "select from chain_cursor c where not exists (select from ledger_group where chain = c.chain and kind = 'lane_deposit')";
  return (await execute(databaseUrl, missing)).length === 0;
}

async function flush(redisUrl: string): Promise<void> {
  const redis = new Redis(redisUrl);
  await redis.flushall();
  redis.disconnect();
}

/** Returns true once the workers report that no chain has to be read again, and that every watcher is near the head. */
async function isReread(stack: Stack): Promise<boolean> {
  const scraped = await Promise.all(stack.file().metricsUrls.map((url) => scrape(url).catch(() => [])));
  const values = (name: string) => scraped.flat().filter((one) => one.name === name);
  const pending = values("pay_chain_reread_pending");
  const lags = values("pay_chain_cursor_lag_seconds");
  return pending.length > 0 && pending.every(({ value }) => value === 0) && lags.every(({ value }) => value < 10);
}

async function resolveAndCheck({
  stack,
  shop,
  snapshots,
  since,
}: {
  stack: Stack;
  shop: DrillShop;
  snapshots: { before: Evidence["rows"]; restored: Evidence["rows"] };
  since: number;
}): Promise<DrillResult> {
  const { url } = stack.postgres;
  const known = snapshots.restored.payments.find(({ state }) => state === "succeeded");
  if (!known) throw new Error("the restored database has no payment that has succeeded");
  const reconcile = () => runReconcile(stack.dir);
  const isSettled = async () => {
    // Workers compare lanes with the ledger every five minutes; the drill does not wait that long.
    await execute(url, "update chain_cursor set reconcile_at = now()");
    const { open } = await waitUntilIdle(url, { except: [], forgets: true, withinMs: 60_000 });
    return open.length === 0 && (await reconcile()).agrees;
  };
  const admin = openAdmin(stack);
  const resolution = await resolveExceptions({ admin, paymentId: known.id, isSettled, withinMs: 240_000 });
  const reconciliation = await reconcile();
  const after = await readRows(url);
  const evidence: Evidence = { rows: after, ...(await scan(stack, since)), history: shop.history, heights: {} };
  const { outgoing } = listTreasuryMovements(evidence);
  const { assigned, losses } = resolution;
  const counts = { outgoing, assigned: assigned.length, losses: losses.length };
  const lines = describeForgotten({ ...snapshots, after }, counts);
  const payouts = lines.find(({ what }) => what === "payouts made");
  return {
    lines,
    reconciliation: reconciliation.output,
    violations: [
      ...findViolations({ ...evidence, rows: reopen(after, assigned) }),
      ...(await listContradictions(url)),
      ...resolution.open.map(({ kind, id, amount, asset }) => `exception ${id} (${kind} ${amount} ${asset}) is open`),
      ...(reconciliation.agrees ? [] : ["the reconciliation is not clean"]),
      ...(payouts && payouts.found < payouts.forgotten ? ["forgotten payouts were not adopted"] : []),
    ],
  };
}

/** Returns the rows with assigned exceptions open again: the invariants look for money without a payment there. */
function reopen(rows: Evidence["rows"], assigned: Resolution["assigned"]): Evidence["rows"] {
  const booked = { groupId: 0, kind: "unmatched", txHash: null, logIndex: null };
  const entries = assigned.flatMap(({ asset, amount }) => [
    { ...booked, asset, account: "exceptions", amount: -BigInt(amount) },
    { ...booked, asset, account: "assigned", amount: BigInt(amount) },
  ]);
  return { ...rows, entries: [...rows.entries, ...entries] };
}

/** Runs the documented command. */
async function runReconcile(stackDir: string): Promise<{ agrees: boolean; output: string }> {
  const program = ["local/with-stack-env.ts", "ops/reconcile/main.ts"];
  const ran = run(process.execPath, program, { env: { ...process.env, STACK_DIR: stackDir } });
  return ran.then(
    ({ stdout }) => ({ agrees: true, output: stdout }),
    (error: { stdout?: string; stderr?: string }) => ({ agrees: false, output: `${error.stdout}${error.stderr}` }),
  );
}

/** Reads the chains with code that is not the service's. */
async function scan({ chain, solana, file }: Stack, since: number): Promise<Pick<Evidence, "evm" | "solana">> {
  const treasury = chain.keys.treasury.address.toLowerCase();
  const accounts = chain.keys.lanes.map(({ address }) => address);
  const { evm, solana: cluster } = file();
  const tokens = [chain.contracts.token];
  const [ours, theirs] = await Promise.all([
    scanChain({ url: evm.rpcUrl, since, tokens, treasury, accounts }),
    scanSolana({
      url: cluster.rpcUrl,
      mint: solana.mint.address,
      treasuryAccount: tokenAccountOf(solana.mint, solana.keys.treasury.address),
      lanes: solana.keys.lanes.map(({ address }) => address),
    }),
  ]);
  return {
    // As the networks document of the stack has it.
    evm: { scan: ours, treasury, feeCeiling: 200_000_000_000n },
    solana: { scan: theirs, treasury: solana.keys.treasury.address, feeCeiling: MAX_PRIORITY_FEE },
  };
}
