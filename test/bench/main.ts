import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createProgress } from "../../local/progress.ts";
import { startStack } from "../../local/stack.ts";
import { findRunningStack } from "../../local/stack-file.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { buildService, builtService } from "../support/built-service.ts";
import { benchBusy } from "./bench-busy.ts";
import { benchDowntime } from "./bench-downtime.ts";
import { benchHttp } from "./bench-http.ts";
import { benchLedger } from "./bench-ledger.ts";
import { benchLists } from "./bench-lists.ts";
import { benchLong } from "./bench-long.ts";
import { benchNextBlock } from "./bench-next-block.ts";
import { benchPages, savePageScreenshots } from "./bench-pages.ts";
import { benchPayments } from "./bench-payments.ts";
import { benchPeer } from "./bench-peer.ts";
import { benchPolls } from "./bench-polls.ts";
import { benchRetention } from "./bench-retention.ts";
import { benchScaling } from "./bench-scaling.ts";
import { benchSigner } from "./bench-signer.ts";
import { benchSolana } from "./bench-solana.ts";
import { benchSolanaDowntime } from "./bench-solana-downtime.ts";
import { benchWal } from "./bench-wal.ts";
import { startCountingProxy } from "./counting-proxy.ts";
import { installPeer, PeerMissing } from "./peer-package.ts";
import { type FleetSize, readFleetSizes, startScaledFleet } from "./scaled-fleet.ts";

const help = `usage: npm run bench -- [options]

Pays payments end to end and prints the cost, beside a raw loop on the same machine in the same run.
Uses the running stack (npm start), or builds the service as the image does and starts its own.

  --payments N      the number of payments (default 500)
  --concurrency N   payments, or requests, in flight at once (default 32)
  --warmup N        payments before the clock starts (default 50)
  --chain C         evm (default) or solana
  --peer x402       measure instead this service, a raw loop, and the published x402 with and without a nonce manager, one after
                    the other, and print one table in Markdown; needs the npm registry, and ends with code 3 without it
  --in-flight LIST  the payments in flight of --peer (default 1,8,32,128,256)
  --long MINUTES    measure instead what grows while payments are made at half of full load: the memory of every process after
                    garbage collections, Redis, the database and p99; the first ten minutes do not count. With a block
                    every second unless ANVIL_BLOCK_TIME says otherwise: Anvil needs more time for each block as its chain grows
  --rate N          payments per second of --long (default half of full load, which is measured first)
  --signer          measure instead what the signer costs, beside embedded keys in the same run: alternating rounds of --payments
                    each, which are their own warmup; starts its own stacks
  --http            measure instead creations, options, statuses and checkout pages, beside a bare fastify route; its own
                    stack has four assets
  --busy            measure instead what the watcher receives, uses and asks per block, quiet and with 2,000 transfers of
                    strangers in each block; starts its own stack with one worker
  --downtime        measure instead how a worker catches up with a day of blocks (with --chain solana: of slots) that it was
                    not there for, with transfers of strangers and fifty of ours; starts its own stack with one worker
  --blocks N        blocks of each part of --busy (default 40), or of --downtime (default 43200; slots: 216000)
  --next-block T    measure instead, with a block every T seconds (such as 1,2,12), how many payments are in the next block
                    and how soon after it buyers are answered; starts its own stacks
  --scaling MS      measure instead fleets of several sizes, with every RPC call delayed by MS milliseconds, and print a table
                    in Markdown; starts its own stacks
  --fleets LIST     the fleets of --scaling, each as WORKERSxLANES, then xCHAINS and xPAYMENTS that one transaction can hold,
                    which are 1 and 115 (default 1x8,2x8,4x8,8x8,4x1,4x2,4x4)
  --polls           measure instead how soon long polls return when payments change, with many and with few pollers
  --pages           measure instead the buyer's pages in a browser: bytes, paint, blocking, shift, interactions, axe
  --pictures DIR    save a screenshot of every page and state to DIR, in light and dark; alone, or with --pages
  --ledger          measure instead balances and bookings in a ledger of ten million entries, with their plans
  --wal             measure instead the WAL of a payment of --payments on an empty database and on one with a history, for
                    ids that begin with their time and for random ones, without and with wal_compression; a filled
                    database that DATABASE_URL names is measured as it is, beside an empty one
  --retention       measure instead the bytes of a payment of --history in each table before and after retention
  --lists           measure instead each kind of list page with its totals in an account of --rows payments; DATABASE_URL
                    may name a database that an earlier run has filled
  --rows N          payments of --lists (default 2000000), which take 15 minutes and 30 GB of disk
  --history N       payments before those of --wal and of --retention (default 300000)
  --entries N       entries of --ledger (default 10000000)
  --waiters N       concurrent long polls of --polls (default 20000); needs as many open files (ulimit -n)
  --seconds N       duration of each part of --http and --polls (default 15)
  --help            print this text

ANVIL_BLOCK_TIME, WORKERS and LANES (here 1) configure the stack that it starts. The published results use:
  npm run bench                                                           32 in flight: every payment is paid
  npm run bench -- --concurrency 256 --payments 9000                      throughput with a block per transaction
  ANVIL_BLOCK_TIME=1 npm run bench -- --concurrency 512 --payments 9000   throughput with one block per second
  npm run bench -- --chain solana --concurrency 256 --payments 2000       throughput on Solana`;

const { values, refuse } = readArguments(help, {
  payments: { type: "string", default: "500" },
  concurrency: { type: "string", default: "32" },
  warmup: { type: "string", default: "50" },
  chain: { type: "string", default: "evm" },
  peer: { type: "string" },
  "in-flight": { type: "string", default: "1,8,32,128,256" },
  long: { type: "string" },
  rate: { type: "string" },
  signer: { type: "boolean", default: false },
  http: { type: "boolean", default: false },
  busy: { type: "boolean", default: false },
  downtime: { type: "boolean", default: false },
  blocks: { type: "string" },
  "next-block": { type: "string" },
  scaling: { type: "string" },
  fleets: { type: "string", default: "1x8,2x8,4x8,8x8,4x1,4x2,4x4" },
  polls: { type: "boolean", default: false },
  pages: { type: "boolean", default: false },
  pictures: { type: "string" },
  ledger: { type: "boolean", default: false },
  wal: { type: "boolean", default: false },
  retention: { type: "boolean", default: false },
  lists: { type: "boolean", default: false },
  rows: { type: "string", default: "2000000" },
  history: { type: "string", default: "300000" },
  entries: { type: "string", default: "10000000" },
  waiters: { type: "string", default: "20000" },
  seconds: { type: "string", default: "15" },
});
if (values.chain !== "evm" && values.chain !== "solana") {
  refuse("--chain takes evm or solana");
}
const inFlight = values["in-flight"].split(",").map(Number);
if ((values.peer ?? "x402") !== "x402" || !inFlight.every((one) => Number.isInteger(one) && one > 0)) {
  refuse("--peer takes x402, and --in-flight whole numbers");
}
const fleets = readFleetSizes(values.fleets) ?? [];
if (fleets.length === 0) {
  refuse("--fleets takes fleets such as 1x8,4x8x4");
}
/** Returns the number of blocks that Base, or of slots that Solana, makes in a day; few for --busy. */
function defaultBlocks(): number {
  if (!values.downtime) return 40;
  return values.chain === "solana" ? 216_000 : 43_200;
}
const counts = {
  payments: Number(values.payments),
  concurrency: Number(values.concurrency),
  warmup: Number(values.warmup),
  waiters: Number(values.waiters),
  seconds: Number(values.seconds),
  entries: Number(values.entries),
  history: Number(values.history),
  rows: Number(values.rows),
  blocks: Number(values.blocks ?? defaultBlocks()),
  long: Number(values.long ?? 30),
  rate: Number(values.rate ?? 1),
  scaling: Number(values.scaling ?? 100),
};
for (const [name, count] of Object.entries(counts))
  if (!Number.isInteger(count) || count < (name === "warmup" ? 0 : 1)) {
    refuse(`--${name} takes a whole number`);
  }

const progress = createProgress();
if (values.wal) {
  await benchWal({ history: counts.history, payments: counts.payments, say: progress.say });
  process.exit(0);
}
if (values.lists) {
  await benchLists({ rows: counts.rows, say: progress.say });
  process.exit(0);
}
if (values.retention) {
  await benchRetention({ history: counts.history, say: progress.say });
  process.exit(0);
}
if (values.ledger) {
  await benchLedger({ entries: counts.entries, say: progress.say });
  process.exit(0);
}
if (values.peer) {
  const folder = await installPeer().catch((error: unknown) => {
    if (!(error instanceof PeerMissing)) throw error;
    console.error(error.message);
    process.exit(3);
  });
  const settings = await withFreePorts(readSettings({ LANES: "1", ...process.env, LOG_LEVEL: "warn" }));
  const start = async () => {
    await buildService();
    const STACK_DIR = join(settings.STACK_DIR, "bench-peer");
    return startStack({ ...settings, STACK_DIR }, progress.say, { build: builtService });
  };
  const measured = benchPeer(start, { inFlight, settings, folder, say: progress.say });
  const isWithin = await measured.finally(() => rm(folder, { recursive: true, force: true }));
  process.exit(isWithin ? 0 : 1);
}
if (values.long) {
  await buildService();
  // With the states of all blocks, Anvil's memory grows by gigabytes in half an hour.
  const chain = { ANVIL_BLOCK_TIME: "1", ANVIL_MANY_BLOCKS: "true" };
  const environment = { LANES: "1", ...chain, ...process.env, LOG_LEVEL: "warn" };
  const settings = await withFreePorts(readSettings(environment));
  const STACK_DIR = join(settings.STACK_DIR, "bench-long");
  const stack = await startStack({ ...settings, STACK_DIR }, progress.say, { build: builtService });
  const rate = values.rate === undefined ? undefined : counts.rate;
  const measured = benchLong(stack.file(), { minutes: counts.long, rate, say: progress.say });
  process.exit((await measured.finally(stack.stop)) ? 0 : 1);
}
if (values.busy) {
  const settings = await withFreePorts(readSettings({ ...process.env, LANES: "1", WORKERS: "1", LOG_LEVEL: "warn" }));
  const proxy = await startCountingProxy(`http://127.0.0.1:${settings.ANVIL_PORT}`);
  const dir = join(settings.STACK_DIR, "bench-busy");
  await buildService();
  const of = { ...settings, STACK_DIR: dir, EVM_RPC_URL: proxy.url };
  const stack = await startStack(of, progress.say, { build: builtService });
  const isWithin = await benchBusy(stack, { proxy, blocks: counts.blocks, say: progress.say }).finally(stack.stop);
  process.exit(isWithin ? 0 : 1);
}
const blockTimes = values["next-block"]?.split(",").map(Number);
if (blockTimes) {
  await buildService();
  let isWithin = true;
  for (const blockTime of blockTimes) {
    const settings = await withFreePorts(
      readSettings({ LANES: "1", ...process.env, ANVIL_BLOCK_TIME: String(blockTime), LOG_LEVEL: "warn" }),
    );
    const STACK_DIR = join(settings.STACK_DIR, "bench-next-block");
    const stack = await startStack({ ...settings, STACK_DIR }, progress.say, { build: builtService });
    const measured = benchNextBlock(stack.file(), { blockTime, say: progress.say });
    isWithin = (await measured.finally(stack.stop)) && isWithin;
  }
  process.exit(isWithin ? 0 : 1);
}
if (values.scaling) {
  await buildService();
  const { payments, concurrency, scaling: delayMs } = counts;
  const start = (size: FleetSize) => startScaledFleet(size, delayMs, progress.say);
  await benchScaling(start, { sizes: fleets, payments, concurrency, delayMs, say: progress.say });
  process.exit(0);
}
if (values.signer) {
  await buildService();
  const start = async (SIGNER: "embedded" | "process") => {
    const settings = await withFreePorts(readSettings({ LANES: "1", ...process.env, SIGNER, LOG_LEVEL: "warn" }));
    const STACK_DIR = join(settings.STACK_DIR, `bench-${SIGNER}`);
    return startStack({ ...settings, STACK_DIR }, progress.say, { build: builtService });
  };
  const [embedded, signer] = [await start("embedded"), await start("process")];
  const { payments, concurrency } = counts;
  const args = { payments, concurrency, say: progress.say };
  const measured = benchSigner({ embedded: embedded.file(), signer: signer.file() }, args);
  const isWithin = await measured.finally(() => Promise.all([embedded.stop(), signer.stop()]));
  process.exit(isWithin ? 0 : 1);
}
if (values.downtime) {
  const settings = await withFreePorts(
    readSettings({ ...process.env, LANES: "1", WORKERS: "1", LOG_LEVEL: "warn", ANVIL_MANY_BLOCKS: "true" }),
  );
  const isSolana = values.chain === "solana";
  const proxy = await startCountingProxy(`http://127.0.0.1:${isSolana ? settings.SOLANA_PORT : settings.ANVIL_PORT}`);
  const through = isSolana ? { SOLANA_PROXY_URL: proxy.url } : { EVM_RPC_URL: proxy.url };
  const dir = join(settings.STACK_DIR, "bench-downtime");
  const stack = await startStack({ ...settings, STACK_DIR: dir, ...through }, progress.say);
  const args = { proxy, say: progress.say };
  const measured = isSolana
    ? benchSolanaDowntime(stack, { ...args, slots: counts.blocks, slotMs: settings.SOLANA_SLOT_MS })
    : benchDowntime(stack, { ...args, blocks: counts.blocks });
  process.exit((await measured.finally(stack.stop)) ? 0 : 1);
}
const settings = readSettings({ LANES: "1", ...(values.http ? { TOKENS: "4" } : {}), ...process.env });
const running = await findRunningStack(settings.STACK_DIR);
const dir = running ? settings.STACK_DIR : join(settings.STACK_DIR, "bench");
const networksFile = join(dir, "networks.json");
const own = running ? undefined : await startOwn();
const stack = running ?? own?.file();
let failure: unknown;
try {
  if (!stack) throw new Error("no stack");
  const args = { ...counts, say: progress.say };
  if (values.http) await benchHttp(stack, args);
  if (values.polls) await benchPolls(stack, args);
  if (values.pages) await benchPages(stack, { pictures: values.pictures, say: progress.say });
  else if (values.pictures) await savePageScreenshots(stack, { pictures: values.pictures, say: progress.say });
  const pays = !values.http && !values.polls && !values.pages && !values.pictures;
  if (pays && values.chain === "solana") await benchSolana(stack, args);
  else if (pays) await benchPayments(stack, { ...args, blockTime: settings.ANVIL_BLOCK_TIME, networksFile });
} catch (error) {
  failure = error;
}
await own?.stop();
if (failure) console.error(failure instanceof Error ? failure.message : failure);
process.exit(failure ? 1 : 0);

async function startOwn() {
  progress.say("building the service");
  await buildService();
  const own = await withFreePorts({ ...settings, STACK_DIR: dir, LOG_LEVEL: "warn" });
  return startStack(own, progress.say, { build: builtService });
}
