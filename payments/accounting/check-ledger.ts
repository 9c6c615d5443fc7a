import type { Finding } from "../../db/findings.ts";
import { findWrongBalances, findWrongSums } from "../../db/queries/balance-findings.ts";
import type { CheckScope } from "../../db/queries/check-scope.ts";
import {
  addFindings,
  endLedgerCheck,
  findLastCheck,
  replaceFindings,
  takeLedgerCheck,
} from "../../db/queries/ledger-checks.ts";
import { findWrongPayoutTransfers, findWrongRefunds } from "../../db/queries/payout-findings.ts";
import { findUnbookedSettlements, findUnexplainedSettlements } from "../../db/queries/settlement-findings.ts";
import { trySavepoint } from "../../db/savepoint.ts";
import type { Db, Pool } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** The parts of the check. */
const finders: readonly ((db: Db, scope: CheckScope) => Promise<Finding[]>)[] = [
  findWrongBalances,
  findWrongSums,
  findUnexplainedSettlements,
  findUnbookedSettlements,
  findWrongRefunds,
  findWrongPayoutTransfers,
];

/** What a check found, and what its parts that failed have thrown. */
type Check = { findings: Finding[]; failures: unknown[] };

/**
 * Compares the rows that payouts depend on with each other: balances, settlements, refunds and transfers with the ledger,
 * and the ledger with itself. Returns every contradiction. All statements see the database as of one time.
 *
 * A scope without `since` reads all rows, which takes as long as a scan of the ledger. Rows that someone writes into the
 * database cannot deceive the signer, which checks payouts on the chain; this check reports that someone has written them.
 */
export function checkLedger(db: Pool, scope: CheckScope): Promise<Finding[]> {
  return inSnapshot(db, (trx) => findContradictions(trx, scope));
}

function inSnapshot<T>(db: Pool, work: (trx: Db) => Promise<T>): Promise<T> {
  return db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only").execute(work);
}

/** Does the same in a transaction of the caller's. */
export async function findContradictions(db: Db, scope: CheckScope): Promise<Finding[]> {
  const { findings, failures } = await runFinders(db, scope);
  if (failures.length > 0) throw failures[0];
  return findings;
}

/** Runs each part of the check. A part that fails, by a timeout for instance, hides no finding of the others. */
async function runFinders(db: Db, scope: CheckScope): Promise<Check> {
  const check: Check = { findings: [], failures: [] };
  for (const find of finders) {
    const found = await trySavepoint(db, () => find(db, scope));
    if (found.ok) check.findings.push(...found.value);
    else check.failures.push(found.error);
  }
  return check;
}

/** Interval between checks, milliseconds: ten times what the last one took, within these limits. */
const CHECK_EVERY_MS = 300_000;
const MAX_PAUSE_MS = 1_200_000;
const DURATIONS = 10;
/** When another process makes a check that a process has begun and not ended, milliseconds. */
const ABANDONED_MS = 30 * 60_000;
/** How long before the last check a payout can have been booked that the check did not see, milliseconds. */
const OVERLAP_MS = 600_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Checks the ledger when it is due, in one process of the fleet. Reads what is unfinished, the payouts since the last check,
 * and the sums of the days (UTC) since then, and once more what former checks have found. Stores and logs the findings. When a part
 * of the check fails, adds what the other parts have found to the former findings, and throws: the check then counts as not made.
 */
export async function checkLedgerIfDue(deps: Pick<PaymentDeps, "db" | "now" | "log">): Promise<void> {
  const now = deps.now();
  if (!(await takeLedgerCheck(deps.db, { now, nextAt: new Date(now.getTime() + ABANDONED_MS) }))) return;
  const begunAt = performance.now();
  try {
    const scope = scopeAfter(await findLastCheck(deps.db), now);
    const { findings, failures } = await inSnapshot(deps.db, (trx) => runFinders(trx, scope));
    if (failures.length > 0) await addFindings(deps.db, findings, now);
    else await deps.db.transaction().execute((db) => replaceFindings(db, findings, now));
    for (const finding of findings) deps.log.error({ ...finding }, "rows of the ledger contradict each other");
    if (failures.length > 0) throw failures[0];
  } finally {
    // A check holds back the removal of old versions of rows, so a long one runs less often.
    const pauseMs = Math.min(MAX_PAUSE_MS, Math.max(CHECK_EVERY_MS, DURATIONS * (performance.now() - begunAt)));
    await endLedgerCheck(deps.db, { nextAt: new Date(now.getTime() + pauseMs) });
  }
}

/**
 * Returns what a check reads after one that was made at `last`. One statement reads the sums of all its days, so they are no more than
 * today's and yesterday's, however many checks have failed.
 */
function scopeAfter(last: Date, now: Date): CheckScope {
  const startOfDay = (time: number) => Math.floor(time / DAY_MS) * DAY_MS;
  const paidSince = last.getTime() - OVERLAP_MS;
  const since = Math.max(startOfDay(paidSince), startOfDay(now.getTime()) - DAY_MS);
  return { since: new Date(since), paidSince: new Date(paidSince) };
}
