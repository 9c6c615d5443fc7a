import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Say } from "../../local/service.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { runCleanups } from "../support/cleanups.ts";
import { countEffects, countEnded, listContradictions, readRows } from "./database-rows.ts";
import { collectEvmEvidence, finalityBlocks } from "./evm-environment.ts";
import { fundEvmPayers } from "./evm-payers.ts";
import { type FaultSchedule, type InjectedFault, injectFaults, prepareFaults } from "./fault-scheduler.ts";
import { applyContractChanges } from "./gas-oracle-server.ts";
import { findViolations } from "./payment-invariants.ts";
import { cancelReopenedPayments, type PayersOf, startLoad } from "./payment-load.ts";
import { type Family, type Plan, planPayments } from "./payment-plan.ts";
import { drawSeedFaults, type RareFault, type SeedFaults } from "./seed-faults.ts";
import { createRandom, type Random } from "./seeded-random.ts";
import { collectSolanaEvidence, finalityDepthSlots } from "./solana-environment.ts";
import { fundSolanaPayers } from "./solana-payers.ts";
import { startEnvironment, type TestEnvironment } from "./test-environment.ts";
import { secondsUntilExpiry, waitUntilIdle } from "./wait-until-idle.ts";

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
  seedFaults: SeedFaults;
  /** One sentence per violation. */
  violations: string[];
  injected: InjectedFault[];
  /** How often the faults had each effect. */
  effects: Record<string, number>;
  /** The number of payments in each state. */
  ends: Record<string, number>;
  /** Milliseconds from the last fault until everything that could finish had finished and was paid out. */
  idleMs: number;
  /** Milliseconds that the rest took after the payers' authorizations had expired. */
  expiryWaitMs: number;
  /** The work that finished last. */
  last: string[];
};

/**
 * The time limit for recovery from the faults. The service retries a payment that it could not decide within a minute, and a busy
 * machine needs several times as long for the rest.
 */
const quietWithinMs = 150_000;
/** The shortest duration of a run, so that every fault is injected during payments. */
const leastMs = 20_000;
const paymentEveryMs = 125;
/** How long the faults go on, beyond the planned duration, while wallets have not sent their first confirm. */
const longestFaultsMs = 60_000;
/** The time after the last fault within which every wallet must have sent its first confirm. */
const unsentMs = 120_000;
/** The time after the last payment has ended within which every wallet must know the end. */
const unreportedMs = 90_000;

/** Runs one seed: starts the environment, pays during faults, waits until all work is finished, and checks the invariants. */
export async function runSeed(options: RunOptions): Promise<Outcome> {
  try {
    return await run(options);
  } finally {
    await runCleanups();
  }
}

async function run({ seed, payments, workers, chains, rare, dir, say }: RunOptions): Promise<Outcome> {
  const random = createRandom(seed);
  const seedFaults = drawSeedFaults(seed, random.branch("seedFaults"), { chains, rare });
  const environment = await startEnvironment({ dir, workers, chains, seedFaults, random, say });
  const { history, databaseUrl } = environment;
  const everyMs = Math.max(paymentEveryMs, Math.floor(leastMs / payments));
  const plans = planPayments(random.branch("plans"), { payments, everyMs, chains });
  say(`funding the buyers of ${payments} payments`);
  const { payers, since, faultSchedule } = await prepare(environment, { plans, seedFaults, random });
  const abort = new AbortController();
  const { signal } = abort;

  say("paying while faults are injected");
  const load = startLoad({ environment, payers, plans, conditions: seedFaults, random: random.branch("load"), signal });
  // Awaited below; until then a failed payment must not end the process.
  load.over.catch(() => undefined);
  try {
    const durationMs = payments * everyMs;
    const longest = pause(durationMs + longestFaultsMs, undefined, { signal }).catch(() => undefined);
    const injected = await injectFaults(
      faultSchedule,
      { random: random.branch("faultSchedule"), durationMs, signal },
      Promise.race([load.sent, longest]),
    );
    const unsent = await violationUnless(load.sent, unsentMs, "sending every confirm");
    const endedMeanwhile = await countEnded(databaseUrl);
    const heights = await readHeights(environment);
    say(
      `${injected.length} faults are over, ${endedMeanwhile} payments have ended; waiting until all work is finished`,
    );
    if (history.lost.length > 0) await cancelReopenedPayments(environment, signal);
    const waiting = history.payments.flatMap(({ paymentId, endsAfterExpiry }) =>
      endsAfterExpiry || seedFaults.takesFees ? paymentId : [],
    );
    const forgets = history.lost.length > 0;
    const quiet = await waitUntilIdle(databaseUrl, { except: waiting, forgets, heights, withinMs: quietWithinMs });
    say(`idle after ${seconds(quiet.ms)}; advancing the chain's clock past the open authorizations`);
    await environment.evm?.miner.advance(await secondsUntilExpiry(databaseUrl, environment.evm.client));
    const afterExpiry = await waitUntilIdle(databaseUrl, { except: [], forgets, withinMs: quietWithinMs });
    const unreported = await violationUnless(load.over, unreportedMs, "returning every payment's end");
    await environment.evm?.miner.stop();
    const [rows, evm, solana] = await Promise.all([
      readRows(databaseUrl),
      environment.evm && collectEvmEvidence(environment.evm, since),
      environment.solana && collectSolanaEvidence(environment.solana),
    ]);
    const ends = countOf(rows.payments.map(({ state }) => state));
    const late = [...quiet.open, ...afterExpiry.open].map((what) => `unfinished at the time limit: ${what}`);
    const evidence = { rows, evm, solana, history, heights };
    const contradictions = await listContradictions(databaseUrl);
    const violations = [...unsent, ...late, ...unreported, ...findViolations(evidence), ...contradictions];
    if (violations.length > 0) await writeFile(join(dir, "evidence.json"), JSON.stringify(evidence, toText, 1));
    const effects = {
      "payments ended during the faults": endedMeanwhile,
      ...(await countEffects(databaseUrl)),
      "log ranges refused": environment.evm?.endpoints.reduce((sum, endpoint) => sum + endpoint.limited(), 0) ?? 0,
      "processes that refused to start": environment.refusedToStart(),
      "payments lost": history.payments.filter(({ forgotten }) => forgotten).length,
    };
    return {
      seed,
      seedFaults,
      violations,
      injected,
      effects,
      ends,
      idleMs: quiet.ms,
      expiryWaitMs: afterExpiry.ms,
      last: quiet.last,
    };
  } finally {
    abort.abort();
  }
}

type Prepared = { payers: PayersOf; since: number; faultSchedule: FaultSchedule };

/**
 * Funds every buyer and third party below the reach of the run's reorgs. `since` is the block from which the funds are
 * safe.
 */
async function prepare(
  environment: TestEnvironment,
  { plans, seedFaults, random }: { plans: readonly Plan[]; seedFaults: SeedFaults; random: Random },
): Promise<Prepared> {
  const { evm, solana } = environment;
  const payers: PayersOf = {};
  const contractChanges = evm && applyContractChanges(evm);
  if (solana) payers.solana = await fundSolanaPayers(solana, plans);
  if (evm && contractChanges)
    payers.evm = await fundEvmPayers(evm, plans, { random: random.branch("payers"), contractChanges });
  const faultSchedule = await prepareFaults({
    environment,
    contractChanges,
    seedFaults,
    random: random.branch("faultSchedule"),
  });
  await solana?.solana.knobs.jump(finalityDepthSlots + 1);
  await evm?.client.mine({ blocks: finalityBlocks });
  const since = evm ? Number(await evm.client.getBlockNumber()) : 0;
  await evm?.miner.start();
  return { payers, since, faultSchedule };
}

/** Returns a violation when the work fails or takes longer than `ms`. */
function violationUnless(work: Promise<unknown>, ms: number, what: string): Promise<string[]> {
  return withTimeout(work, ms, what).then(
    () => [],
    (error: unknown) => [`answers: ${error}`],
  );
}

const toText = (_key: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);

/** Returns the newest block, or slot, of every chain. */
async function readHeights({ evm, solana }: TestEnvironment): Promise<Record<string, number>> {
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
