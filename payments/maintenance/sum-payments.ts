import {
  addToSums,
  insertSummedAccount,
  listAccountsToSum,
  lockSums,
  type SummedAccount,
} from "../../db/queries/ended-payments.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * Payments of an account that have ended before they are added to its sums. Lists read fewer of them one by one, which takes
 * a few milliseconds. Adding many at a time writes each sum less often.
 */
const AT_LEAST = 1_000;
/** Payments of one transaction. */
const BATCH = 5_000;

/**
 * Adds payments that have ended to the sums of their accounts, one batch for each account that has many. Returns "more" while
 * there is more to add. Any number of workers may run it: one of them sums the payments of an account at a time. An error of
 * one account does not stop the others: it is logged, and thrown once there is nothing more to add for them.
 */
export async function sumEndedPayments(
  { db, log }: Pick<PaymentDeps, "db" | "log">,
  { atLeast = AT_LEAST, batch = BATCH }: { atLeast?: number; batch?: number } = {},
): Promise<"more" | "done"> {
  const errors: unknown[] = [];
  let isMore = false;
  for (const owner of await listAccountsToSum(db, { atLeast })) {
    const added = await sumAccount(db, owner, batch).catch((err: unknown) => {
      log.error(
        { account: owner.account_id, mode: owner.mode, err },
        "payments of an account cannot be added to its sums",
      );
      errors.push(err);
      return 0;
    });
    isMore ||= added === batch;
  }
  if (isMore) return "more";
  if (errors.length > 0) throw errors[0];
  return "done";
}

async function sumAccount(db: PaymentDeps["db"], account: SummedAccount, batch: number): Promise<number> {
  await insertSummedAccount(db, account);
  return db.transaction().execute(async (db) => ((await lockSums(db, account)) ? addToSums(db, account, batch) : 0));
}
