import { deleteOldRefusedAttempts } from "../../db/queries/attempts.ts";
import { deleteOldBurnedGas } from "../../db/queries/burned-gas.ts";
import { deleteOverdueData } from "../../db/queries/collected-data.ts";
import { deleteOldRequests } from "../../db/queries/operator-requests.ts";
import { deleteRenewedOptions } from "../../db/queries/payment-options.ts";
import { deleteOldAttempts as deleteOldDeliveryAttempts } from "../../db/queries/webhook-deliveries.ts";
import { deleteExpiredResponses } from "../idempotency-keys.ts";
import { QUOTE_GRACE_MS } from "../options/quotes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Rows of each table deleted in one run. */
const LIMIT = 5_000;

/** Retention of refused attempts and of burned gas records, milliseconds. */
const REFUSED_MS = 24 * 3_600_000;
const BURNED_MS = 48 * 3_600_000;
/** Retention of what operators have requested on the console, milliseconds. The audit log keeps what was done. */
const REQUESTED_MS = 90 * 24 * 3_600_000;
/** Retention of the requests to webhook endpoints and their responses, milliseconds. */
const SENT_MS = 30 * 24 * 3_600_000;
/** Retention of an unsigned quote after its end, once it was renewed, milliseconds. */
const QUOTE_LIFETIME_MS = 24 * 3_600_000;
/**
 * How far back the search for renewed quotes goes, milliseconds. Most are deleted as soon as their retention is over. The others end
 * long after they were renewed, or their chain was not read.
 */
const QUOTE_FOUND_MS = 36 * 3_600_000;
const DAY_MS = 24 * 3_600_000;

/**
 * Deletes rows past their retention: buyer data, responses kept for idempotency, refused attempts with the results that
 * wallets sent, burned gas that no limit counts any more, requests to webhook endpoints, and renewed quotes that no money can match.
 * Returns the number of rows deleted of each kind.
 */
export async function cleanUp(deps: Pick<PaymentDeps, "db" | "now">): Promise<{
  collected: number;
  answers: number;
  attempts: number;
  gas: number;
  sent: number;
  quotes: number;
  requests: number;
}> {
  const ago = (ms: number) => new Date(deps.now().getTime() - ms);
  return {
    collected: await deleteOverdueData(deps.db, { now: deps.now(), limit: LIMIT }),
    answers: await deleteExpiredResponses(deps, LIMIT),
    attempts: await deleteOldRefusedAttempts(deps.db, { before: ago(REFUSED_MS), limit: LIMIT }),
    gas: await deleteOldBurnedGas(deps.db, { before: ago(BURNED_MS), limit: LIMIT }),
    sent: await deleteOldDeliveryAttempts(deps.db, { before: ago(SENT_MS), limit: LIMIT }),
    requests: await deleteOldRequests(deps.db, { before: ago(REQUESTED_MS), limit: LIMIT }),
    quotes: await deleteQuotes(deps, { from: QUOTE_FOUND_MS, to: QUOTE_LIFETIME_MS }),
  };
}

/**
 * Deletes the renewed quotes that `cleanUp` no longer looks for: those that were renewed `age` days ago, 0 to 29. A day's quotes are read
 * in one run, so that no statement reads those of a month. Returns the number of rows.
 */
export async function deleteLateQuotes(deps: Pick<PaymentDeps, "db" | "now">, age: number): Promise<number> {
  for (let deleted = 0; ; ) {
    const count = await deleteQuotes(deps, { from: (age + 1) * DAY_MS, to: age * DAY_MS });
    deleted += count;
    if (count < LIMIT) return deleted;
  }
}

/** Deletes renewed quotes. Their renewals were made between these times ago, milliseconds. */
function deleteQuotes(
  { db, now }: Pick<PaymentDeps, "db" | "now">,
  found: { from: number; to: number },
): Promise<number> {
  const ago = (ms: number) => new Date(now().getTime() - ms);
  return deleteRenewedOptions(db, {
    window: { from: ago(found.from), to: ago(found.to) },
    over: ago(QUOTE_LIFETIME_MS),
    lateMs: QUOTE_GRACE_MS,
    limit: LIMIT,
  });
}
