import type { Say } from "../../ops/local/service.ts";
import { within } from "../../ops/local/wait.ts";
import { endAll } from "../support/at-end.ts";
import { finalityBlocks, gatherEvm } from "./evm-stage.ts";
import { findViolations } from "./invariants.ts";
import { type PayersOf, startLoad } from "./load.ts";
import type { Miner } from "./miner.ts";
import { breakThings, type Injected } from "./nemesis.ts";
import { makePayers } from "./payers.ts";
import { type Family, type Plan, planPayments } from "./plan.ts";
import { secondsToOutlive, waitQuiet } from "./quiet.ts";
import { createRandom, type Random } from "./random.ts";
import { countBites, countEnded, readRows } from "./rows.ts";
import { makeSolanaPayers } from "./solana-payers.ts";
import { finalAfter, gatherSolana } from "./solana-stage.ts";
import { bringUp, type Stage } from "./stage.ts";

export type RunOptions = {
  seed: number;
  payments: number;
  workers: number;
  chains: readonly Family[];
  dir: string;
  say: Say;
};

export type Outcome = {
  seed: number;
  /** Sentences, one per broken invariant; none is what we want. */
  violations: string[];
  injected: Injected[];
  /** How often they were felt. */
  bites: Record<string, number>;
  /** How many payments ended how. */
  ends: Record<string, number>;
  /** Milliseconds from the last fault until everything that could end had ended and was paid out. */
  quietMs: number;
  /** Milliseconds that the rest took, once the chain's clock had passed what its payers had signed. */
  outlivedMs: number;
};

/** The faults have this long to be forgotten. */
const quietWithinMs = 60_000;
/** A run is at least this long, so that every fault has its turn while payments flow. */
const leastMs = 20_000;
const paymentEveryMs = 125;
/** Even while everything breaks, a wallet gets its first confirm out within this time. */
const unsentMs = 60_000;

/** One run: brings everything up, lets payments flow while everything breaks, waits until it is quiet, and judges. */
export async function runSeed(options: RunOptions): Promise<Outcome> {
  try {
    return await run(options);
  } finally {
    await endAll();
  }
}

async function run({ seed, payments, workers, chains, dir, say }: RunOptions): Promise<Outcome> {
  const random = createRandom(seed);
  const stage = await bringUp({ dir, workers, chains, say });
  const everyMs = Math.max(paymentEveryMs, Math.floor(leastMs / payments));
  const plans = planPayments(random.branch("plans"), { payments, everyMs, chains });
  say(`funding the buyers of ${payments} payments`);
  const { payers, since, miner } = await prepare(stage, plans, random.branch("payers"));
  const calledOff = new AbortController();
  const { signal } = calledOff;

  say("payments flow, and everything breaks");
  const load = startLoad({ stage, payers, plans, random: random.branch("load"), signal });
  // Heard where it is waited for; until then a failed journey must not end the process.
  load.over.catch(() => undefined);
  try {
    const slow: string[] = [];
    const durationMs = payments * everyMs;
    const sent = within(durationMs + unsentMs, "sending every confirm", load.sent).catch((error: unknown) => {
      slow.push(`answers: ${error}`);
    });
    const nemesis = { stage, miner, random: random.branch("nemesis"), durationMs, signal };
    const injected = await breakThings(nemesis, sent);
    const endedMeanwhile = await countEnded(stage.postgres.url);
    say(`${injected.length} faults are over, ${endedMeanwhile} payments had ended by then; waiting for quiet`);
    const waiting = () => load.history.asked.flatMap(({ paymentId, kind }) => (/for good/.test(kind) ? paymentId : []));
    const quiet = await waitQuiet(stage.postgres.url, { except: waiting(), withinMs: quietWithinMs });
    say(`quiet after ${seconds(quiet.ms)}; the chain's clock passes what payers in trouble have signed`);
    if (stage.evm) await miner?.advance(await secondsToOutlive(stage.postgres.url, stage.evm.client));
    const outlived = await waitQuiet(stage.postgres.url, { except: [], withinMs: quietWithinMs });
    const deaf = await within(15_000, "telling every wallet its end", load.over).then(
      () => [],
      (error: unknown) => [`answers: ${error}`],
    );
    await miner?.stop();
    const [rows, evm, solana] = await Promise.all([
      readRows(stage.postgres.url),
      stage.evm && gatherEvm(stage.evm, since),
      stage.solana && gatherSolana(stage.solana),
    ]);
    const evidence = { rows, evm, solana, history: load.history };
    const ends = countOf(evidence.rows.payments.map(({ state }) => state));
    const late = [...quiet.open, ...outlived.open].map((what) => `a minute after the last fault: ${what}`);
    const violations = [...slow, ...late, ...deaf, ...findViolations(evidence)];
    const bites = { "payments ended meanwhile": endedMeanwhile, ...(await countBites(stage.postgres.url)) };
    return { seed, violations, injected, bites, ends, quietMs: quiet.ms, outlivedMs: outlived.ms };
  } finally {
    calledOff.abort();
  }
}

/** Everybody gets what he pays with, and it must not go with the first reorg. `since`: the block that it is safe in. */
async function prepare(
  { evm, solana }: Stage,
  plans: readonly Plan[],
  random: Random,
): Promise<{ payers: PayersOf; since: number; miner: Miner | undefined }> {
  const payers: PayersOf = {};
  if (solana) {
    payers.solana = await makeSolanaPayers(solana, plans);
    await solana.solana.knobs.jump(finalAfter + 1);
  }
  if (evm === undefined) return { payers, since: 0, miner: undefined };
  payers.evm = await makePayers(evm, plans, random);
  await evm.client.mine({ blocks: finalityBlocks });
  const since = Number(await evm.client.getBlockNumber());
  return { payers, since, miner: await evm.startMiner() };
}

/** How often each value stands in a list. */
export function countOf(values: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(values, (value) => value)].map(([value, all]) => [value, all.length]));
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
