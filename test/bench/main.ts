import { join } from "node:path";
import { parseArgs } from "node:util";
import { createProgress } from "../../ops/local/progress.ts";
import { readSettings, withFreePorts } from "../../ops/local/settings.ts";
import { startStack } from "../../ops/local/stack.ts";
import { findRunningStack } from "../../ops/local/stack-file.ts";
import { benchHttp } from "./http.ts";
import { benchLedger } from "./ledger.ts";
import { benchPages, picturePages } from "./pages.ts";
import { benchPayments } from "./pay.ts";
import { benchPolls } from "./polls.ts";
import { benchSolana } from "./solana.ts";

const help = `usage: npm run bench -- [options]

Pays payments end to end and prints what it cost, beside a raw loop on the same machine in the same run.
Uses the stack that runs (npm start), or brings up one of its own.

  --payments N      how many (default 500)
  --concurrency N   payments, or requests, in flight at once (default 32)
  --warmup N        payments before the clock starts (default 50)
  --chain C         evm (default) or solana
  --http            creating payments and asking for status instead, beside a bare fastify route
  --polls           waiting long polls instead, woken while payments change, beside a few that wait
  --pages           the buyer's pages instead, in a real browser: bytes, paint, blocking, shift, interactions, axe
  --pictures DIR    puts a picture of every page and state there, in light and dark; alone, or with --pages
  --ledger          a ledger of ten million entries instead: what balances and bookings cost, with their plans
  --entries N       entries of --ledger (default 10000000)
  --waiters N       long polls that wait (default 5000)
  --seconds N       how long each part of --http and --polls takes (default 15)
  --help            this text

ANVIL_BLOCK_TIME, WORKERS and LANES (here 1) change the stack that it brings up. The settings that are told of:
  npm run bench                                                           32 in flight: every payment is paid
  npm run bench -- --concurrency 256 --payments 3000                      speed with a block per transaction
  ANVIL_BLOCK_TIME=1 npm run bench -- --concurrency 512 --payments 3000   speed with a block a second
  npm run bench -- --chain solana --concurrency 256 --payments 2000       speed on Solana`;

const { values } = parseArgs({
  options: {
    payments: { type: "string", default: "500" },
    concurrency: { type: "string", default: "32" },
    warmup: { type: "string", default: "50" },
    chain: { type: "string", default: "evm" },
    http: { type: "boolean", default: false },
    polls: { type: "boolean", default: false },
    pages: { type: "boolean", default: false },
    pictures: { type: "string" },
    ledger: { type: "boolean", default: false },
    entries: { type: "string", default: "10000000" },
    waiters: { type: "string", default: "5000" },
    seconds: { type: "string", default: "15" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit(0);
}
if (values.chain !== "evm" && values.chain !== "solana") {
  console.error(`--chain takes evm or solana\n\n${help}`);
  process.exit(2);
}
const counts = {
  payments: Number(values.payments),
  concurrency: Number(values.concurrency),
  warmup: Number(values.warmup),
  waiters: Number(values.waiters),
  seconds: Number(values.seconds),
  entries: Number(values.entries),
};
for (const [name, count] of Object.entries(counts))
  if (!Number.isInteger(count) || count < (name === "warmup" ? 0 : 1)) {
    console.error(`--${name} takes a whole number\n\n${help}`);
    process.exit(2);
  }

const progress = createProgress();
if (values.ledger) {
  await benchLedger({ entries: counts.entries, say: progress.say });
  process.exit(0);
}
const settings = readSettings({ LANES: "1", ...process.env });
const running = await findRunningStack(settings.STACK_DIR);
const dir = running ? settings.STACK_DIR : join(settings.STACK_DIR, "bench");
const networksFile = join(dir, "networks.json");
const own = running
  ? undefined
  : await startStack(await withFreePorts({ ...settings, STACK_DIR: dir, LOG_LEVEL: "warn" }), progress.say);
const stack = running ?? own?.file();
let failure: unknown;
try {
  if (!stack) throw new Error("no stack");
  const args = { ...counts, say: progress.say };
  if (values.http) await benchHttp(stack, args);
  if (values.polls) await benchPolls(stack, args);
  if (values.pages) await benchPages(stack, { pictures: values.pictures, say: progress.say });
  else if (values.pictures) await picturePages(stack, { pictures: values.pictures, say: progress.say });
  const pays = !values.http && !values.polls && !values.pages && !values.pictures;
  if (pays && values.chain === "solana") await benchSolana(stack, args);
  else if (pays) await benchPayments(stack, { ...args, blockTime: settings.ANVIL_BLOCK_TIME, networksFile });
} catch (error) {
  failure = error;
}
await own?.stop();
if (failure) console.error(failure instanceof Error ? failure.message : failure);
process.exit(failure ? 1 : 0);
