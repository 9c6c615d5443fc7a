import {
  addToSums,
  insertSummedAccount,
  listAccountsToSum,
  lockSums,
  type SummedAccount,
} from "../../db/queries/ended-payments.ts";
import { addToMerchantSets } from "../../db/queries/merchant-sets.ts";
import type { Db } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Payments of an account that have ended before they are added to its sums. Lists read fewer of them one by one, which takes
 * a few milliseconds. Adding many at a time writes each sum less often.
 */
const AT_LEAST = 1_000;
/** Payments of one transaction. */
const BATCH = 5_000;
const DAY_MS = 86_400_000;

type Deps = Pick<PaymentDeps, "db" | "log" | "now">;

/**
 * Adds payments that have ended to the sums of their accounts, one batch for each account that has many. Returns "more" while
 * there is more to add. Any number of workers may run it: one of them sums the payments of an account at a time. An error of
 * one account does not stop the others: it is logged, and thrown once there is nothing more to add for them. The sets of
 * merchants change in a transaction of their own, so that an error of theirs does not stop the sums.
 */
export async function sumEndedPayments(
  deps: Deps,
  { atLeast = AT_LEAST, batch = BATCH }: { atLeast?: number; batch?: number } = {},
): Promise<"more" | "done"> {
  const errors: unknown[] = [];
  let isMore = false;
  for (const account of await listAccountsToSum(deps.db, { atLeast })) {
    const sums = { account, errors, failure: "payments of an account cannot be added to its sums" };
    const added = await tryLocked(deps, sums, (db) => addToSums(db, account, batch));
    isMore ||= added?.count === batch;
    if (added?.newest) {
      const before = lastSettled(added.newest, deps.now());
      const sets = {
        account,
        errors,
        failure: "the sets of merchants' customers cannot be completed; the sums are complete",
      };
      await tryLocked(deps, sets, (db) => addToMerchantSets(db, account, before));
    }
  }
  if (isMore) return "more";
  if (errors.length > 0) throw errors[0];
  return "done";
}

/**
 * Returns the day before which merchants' days are settled: the one before the newest payments, and before today. A payment
 * whose time is ahead of ours does not settle days that get further payments.
 */
function lastSettled(newest: string, now: Date): string {
  const days = Math.min(Date.parse(newest), now.getTime()) - DAY_MS;
  return new Date(days).toISOString().slice(0, 10);
}

/**
 * Works in a transaction that locks the account's sums. Returns undefined when another worker has locked them, or after an error,
 * which it logs as `failure`.
 */
async function tryLocked<T>(
  { db, log }: Deps,
  { account, errors, failure }: { account: SummedAccount; errors: unknown[]; failure: string },
  work: (db: Db) => Promise<T>,
): Promise<T | undefined> {
  try {
    await insertSummedAccount(db, account);
    return await db.transaction().execute(async (db) => ((await lockSums(db, account)) ? work(db) : undefined));
  } catch (err) {
    log.error({ account: account.account_id, mode: account.mode, err }, failure);
    errors.push(err);
    return undefined;
  }
}
