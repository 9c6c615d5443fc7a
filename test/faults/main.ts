import { randomInt } from "node:crypto";
import { join } from "node:path";
import { createProgress } from "../../local/progress.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { buildService } from "../support/built-service.ts";
import { runCleanups } from "../support/cleanups.ts";
import { families } from "./payment-plan.ts";
import { countOf, type Outcome, runSeed, seconds } from "./run-seed.ts";
import { describeSeedFaults, rareFaults } from "./seed-faults.ts";

const help = `usage: npm run faults -- [options]

Pays payments on a private stack while faults are injected: into the chains' endpoints, the processes, Postgres, Redis,
the clocks, the chains, and the tokens; third parties send arbitrary transactions. Each seed also has one heavy fault:
${rareFaults.join(", ")}.
Then waits until all work is finished, and checks by SQL and by a scan of the chains that no payment was lost, doubled or
reported wrongly. Exits with 1 when an invariant was violated.

  --seed N       the first seed (default: random); the same seed gives the same faults and payments
  --seeds N      the number of seeds, run one after the other (default 20)
  --chain X      the chain of the payments: evm or solana (default: both)
  --payments N   payments per seed (default 300)
  --workers N    worker processes (default 2)
  --rare X       the heavy fault of every seed (default: a different one for each seed)
  --help         print this text

The logs of the processes are in .local/faults/<seed>; after a violation, so are the rows and the scans (evidence.json).`;

const { values, refuse } = readArguments(help, {
  seed: { type: "string", default: String(randomInt(1_000_000)) },
  seeds: { type: "string", default: "20" },
  chain: { type: "string" },
  payments: { type: "string", default: "300" },
  workers: { type: "string", default: "2" },
  rare: { type: "string" },
});
const chains = families.filter((family) => values.chain === undefined || values.chain === family);
if (chains.length === 0) {
  refuse(`--chain takes ${families.join(" or ")}`);
}
const rare = rareFaults.find((fault) => fault === values.rare);
if (values.rare !== undefined && rare === undefined) {
  refuse(`--rare takes one of ${rareFaults.join(", ")}`);
}
const numbers = { seed: values.seed, seeds: values.seeds, payments: values.payments, workers: values.workers };
for (const [name, text] of Object.entries(numbers))
  if (!/^\d+$/.test(text) || (name !== "seed" && Number(text) < 1)) {
    refuse(`--${name} takes a whole number`);
  }
let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    interrupted = true;
    void runCleanups().finally(() => process.exit(130));
  });

// Every seed starts the same programs: they share the cache of compiled code.
process.env["NODE_COMPILE_CACHE"] ??= join(process.cwd(), ".local", "compile-cache");
const progress = createProgress();
await buildService();
const [first, payments, workers] = [Number(values.seed), Number(values.payments), Number(values.workers)];
const failed: number[] = [];
for (let seed = first; seed < first + Number(values.seeds); seed += 1) {
  progress.print(`seed ${seed}`);
  const begun = performance.now();
  const dir = join(".local", "faults", String(seed));
  try {
    const outcome = await runSeed({ seed, payments, workers, chains, rare, dir, say: progress.say });
    print(outcome, performance.now() - begun);
    if (outcome.violations.length > 0) failed.push(seed);
  } catch (error) {
    // An error after an interrupt is not a failure of the seed; the signal handler ends the process.
    if (interrupted) break;
    progress.print(`seed ${seed}: the run failed: ${error instanceof Error ? error.stack : error}`);
    failed.push(seed);
  }
}
if (interrupted) await new Promise(() => undefined);
const all = Number(values.seeds);
progress.print(
  `${all - failed.length} of ${all} seeds kept every invariant${failed.length ? `; not ${failed.join(", ")}` : ""}`,
);
process.exit(failed.length === 0 ? 0 : 1);

function print(
  { seed, seedFaults, violations, injected, effects, ends, idleMs, expiryWaitMs, last }: Outcome,
  tookMs: number,
): void {
  const list = (counts: Record<string, number>) =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  progress.print(`seed ${seed}: payments ${list(ends)}; ${seconds(tookMs)} in all`);
  progress.print(`  conditions: ${describeSeedFaults(seedFaults)}`);
  progress.print(`  faults: ${list(countOf(injected.map(({ fault }) => fault)))}`);
  const slowest = injected.toSorted((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 3);
  progress.print(`  longest: ${slowest.map(({ fault, from, to }) => `${fault} ${seconds(to - from)}`).join(", ")}`);
  progress.print(`  effects: ${list(effects)}`);
  progress.print(
    `  idle ${seconds(idleMs)} after the last fault; unpayable payments ended ${seconds(expiryWaitMs)} after their authorizations expired`,
  );
  if (last.length > 0) progress.print(`  finished last: ${last.slice(0, 3).join(", ")}`);
  progress.print(violations.length === 0 ? "  every invariant holds" : `  ${violations.length} violations`);
  for (const violation of violations.slice(0, 50)) progress.print(`  ${violation}`);
}
