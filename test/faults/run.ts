import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Say } from "../../ops/local/service.ts";
import { withTimeout } from "../../ops/timeout.ts";
import { endAll } from "../support/at-end.ts";
import { type Agenda, makeAgenda, type RareFault } from "./agenda.ts";
import { makeEvmPayers } from "./evm-payers.ts";
import { finalityBlocks, gatherEvm } from "./evm-stage.ts";
import { findViolations } from "./invariants.ts";
import { closeForgotten, type PayersOf, startLoad } from "./load.ts";
import { breakThings, type Injected, type Nemesis, prepareNemesis } from "./nemesis.ts";
import { type Family, type Plan, planPayments } from "./plan.ts";
import { secondsToOutlive, waitQuiet } from "./quiet.ts";
import { createRandom, type Random } from "./random.ts";
import { countBites, countEnded, readRows } from "./rows.ts";
import { makeSolanaPayers } from "./solana-payers.ts";
import { finalAfter, gatherSolana } from "./solana-stage.ts";
import { bringUp, type Stage } from "./stage.ts";
import { serveWishes } from "./wishes.ts";

export type RunOptions = {
  seed: number;
  payments: number;
  workers: number;
  chains: readonly Family[];
  /** The heavy fault; derived from the seed when unset. */
  rare?: RareFault | undefined;
  dir: string;
  say: Say;
};

export type Outcome = {
  seed: number;
  agenda: Agenda;
  /** One sentence per violation. */
  violations: string[];
  injected: Injected[];
  /** How often the faults had each effect. */
  bites: Record<string, number>;
  /** The number of payments in each state. */
  ends: Record<string, number>;
  /** Milliseconds from the last fault until everything that could finish had finished and was paid out. */
  quietMs: number;
  /** Milliseconds that the rest took after the payers' authorizations had expired. */
  outlivedMs: number;
  /** The work that finished last. */
  last: string[];
};

/** The time limit for recovery from the faults. The service retries a payment that it could not decide within a minute. */
const quietWithinMs = 75_000;
/** The shortest duration of a run, so that every fault is injected during payments. */
const leastMs = 20_000;
const paymentEveryMs = 125;
/** The time within which a wallet must send its first confirm, even during faults. */
const unsentMs = 120_000;

/** Runs one seed: starts the environment, pays during faults, waits until all work is finished, and checks the invariants. */
export async function runSeed(options: RunOptions): Promise<Outcome> {
  try {
    return await run(options);
  } finally {
    await endAll();
  }
}

async function run({ seed, payments, workers, chains, rare, dir, say }: RunOptions): Promise<Outcome> {
  const random = createRandom(seed);
  const agenda = makeAgenda(seed, random.branch("agenda"), { chains, rare });
  const stage = await bringUp({ dir, workers, chains, agenda, random, say });
  const { history, databaseUrl } = stage;
  const everyMs = Math.max(paymentEveryMs, Math.floor(leastMs / payments));
  const plans = planPayments(random.branch("plans"), { payments, everyMs, chains });
  say(`funding the buyers of ${payments} payments`);
  const { payers, since, nemesis } = await prepare(stage, { plans, agenda, random });
  const abort = new AbortController();
  const { signal } = abort;

  say("paying while faults are injected");
  const load = startLoad({ stage, payers, plans, conditions: agenda, random: random.branch("load"), signal });
  // Awaited below; until then a failed payment must not end the process.
  load.over.catch(() => undefined);
  try {
    const slow: string[] = [];
    const durationMs = payments * everyMs;
    const sent = withTimeout(load.sent, durationMs + unsentMs, "sending every confirm").catch((error: unknown) => {
      slow.push(`answers: ${error}`);
    });
    const injected = await breakThings(nemesis, { random: random.branch("nemesis"), durationMs, signal }, sent);
    const endedMeanwhile = await countEnded(databaseUrl);
    const heights = await readHeights(stage);
    say(
      `${injected.length} faults are over, ${endedMeanwhile} payments have ended; waiting until all work is finished`,
    );
    if (history.lost.length > 0) await closeForgotten(stage, signal);
    const waiting = history.payments.flatMap(({ paymentId, outlives }) =>
      outlives || agenda.takesFees ? paymentId : [],
    );
    const forgets = history.lost.length > 0;
    const quiet = await waitQuiet(databaseUrl, { except: waiting, forgets, heights, withinMs: quietWithinMs });
    say(`idle after ${seconds(quiet.ms)}; advancing the chain's clock past the open authorizations`);
    await stage.evm?.miner.advance(await secondsToOutlive(databaseUrl, stage.evm.client));
    const outlived = await waitQuiet(databaseUrl, { except: [], forgets, withinMs: quietWithinMs });
    const deaf = await withTimeout(load.over, 15_000, "returning every payment's end").then(
      () => [],
      (error: unknown) => [`answers: ${error}`],
    );
    await stage.evm?.miner.stop();
    const [rows, evm, solana] = await Promise.all([
      readRows(databaseUrl),
      stage.evm && gatherEvm(stage.evm, since),
      stage.solana && gatherSolana(stage.solana),
    ]);
    const ends = countOf(rows.payments.map(({ state }) => state));
    const late = [...quiet.open, ...outlived.open].map((what) => `unfinished at the time limit: ${what}`);
    const evidence = { rows, evm, solana, history, heights };
    const violations = [...slow, ...late, ...deaf, ...findViolations(evidence)];
    if (violations.length > 0) await writeFile(join(dir, "evidence.json"), JSON.stringify(evidence, toText, 1));
    const bites = {
      "payments ended during the faults": endedMeanwhile,
      ...(await countBites(databaseUrl)),
      "log ranges refused": stage.evm?.endpoints.reduce((sum, endpoint) => sum + endpoint.limited(), 0) ?? 0,
      "processes that refused to start": stage.refusedToStart(),
      "payments lost": history.payments.filter(({ forgotten }) => forgotten).length,
    };
    return {
      seed,
      agenda,
      violations,
      injected,
      bites,
      ends,
      quietMs: quiet.ms,
      outlivedMs: outlived.ms,
      last: quiet.last,
    };
  } finally {
    abort.abort();
  }
}

type Prepared = { payers: PayersOf; since: number; nemesis: Nemesis };

/**
 * Funds every buyer and third party below the reach of the run's reorgs. `since` is the block from which the funds are
 * safe.
 */
async function prepare(
  stage: Stage,
  { plans, agenda, random }: { plans: readonly Plan[]; agenda: Agenda; random: Random },
): Promise<Prepared> {
  const { evm, solana } = stage;
  const payers: PayersOf = {};
  const wishes = evm && serveWishes(evm);
  if (solana) payers.solana = await makeSolanaPayers(solana, plans);
  if (evm && wishes) payers.evm = await makeEvmPayers(evm, plans, { random: random.branch("payers"), wishes });
  const nemesis = await prepareNemesis({ stage, wishes, agenda, random: random.branch("nemesis") });
  await solana?.solana.knobs.jump(finalAfter + 1);
  await evm?.client.mine({ blocks: finalityBlocks });
  const since = evm ? Number(await evm.client.getBlockNumber()) : 0;
  await evm?.miner.start();
  return { payers, since, nemesis };
}

const toText = (_key: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);

/** Returns the newest block, or slot, of every chain. */
async function readHeights({ evm, solana }: Stage): Promise<Record<string, number>> {
  return {
    ...(evm ? { [evm.id]: Number(await evm.client.getBlockNumber()) } : {}),
    ...(solana ? { [solana.id]: await solana.solana.client.connection.getSlot("processed") } : {}),
  };
}

/** Counts how often each value occurs. */
export function countOf(values: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(values, (value) => value)].map(([value, all]) => [value, all.length]));
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
