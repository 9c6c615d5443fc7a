import type { Finding } from "../../db/findings.ts";
import { type CheckScope, findWrongBalances, findWrongSums } from "../../db/queries/balance-findings.ts";
import { replaceFindings, takeLedgerCheck } from "../../db/queries/ledger-checks.ts";
import {
  findUnbookedSettlements,
  findUnexplainedSettlements,
  findWrongPayoutTransfers,
  findWrongRefunds,
} from "../../db/queries/payout-findings.ts";
import type { Db, Pool } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Compares the rows that payouts depend on with each other: balances, settlements, refunds and transfers with the ledger,
 * and the ledger with itself. Returns every contradiction. All statements see the database as of one time.
 *
 * A scope without `since` reads all rows, which takes as long as a scan of the ledger. Rows that someone writes into the
 * database cannot deceive the signer, which checks payouts on the chain; this check reports that someone has written them.
 */
export function checkLedger(db: Pool, scope: CheckScope): Promise<Finding[]> {
  const transaction = db.transaction().setIsolationLevel("repeatable read").setAccessMode("read only");
  return transaction.execute((trx) => findContradictions(trx, scope));
}

/** Does the same in a transaction of the caller's. */
export async function findContradictions(db: Db, scope: CheckScope): Promise<Finding[]> {
  return [
    ...(await findWrongBalances(db)),
    ...(await findWrongSums(db, scope)),
    ...(await findUnexplainedSettlements(db, scope)),
    ...(await findUnbookedSettlements(db, scope)),
    ...(await findWrongRefunds(db)),
    ...(await findWrongPayoutTransfers(db, scope)),
  ];
}

/** Interval between checks, milliseconds. */
const CHECK_EVERY_MS = 300_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Checks the ledger when it is due, in one process of the fleet. Reads what is unfinished, and what was booked or paid
 * since the beginning of yesterday (UTC). Stores and logs the findings.
 */
export async function checkLedgerIfDue(deps: Pick<PaymentDeps, "db" | "now" | "log">): Promise<void> {
  const now = deps.now();
  const nextAt = new Date(now.getTime() + CHECK_EVERY_MS);
  if (!(await takeLedgerCheck(deps.db, { now, nextAt }))) return;
  const since = new Date(Math.floor(now.getTime() / DAY_MS - 1) * DAY_MS);
  const findings = await checkLedger(deps.db, { since });
  await deps.db.transaction().execute((db) => replaceFindings(db, findings, now));
  for (const finding of findings) deps.log.error({ ...finding }, "rows of the ledger contradict each other");
}
