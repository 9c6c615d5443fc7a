import { deleteOldRefusedAttempts } from "../../db/queries/attempts.ts";
import { deleteOldBurnedGas } from "../../db/queries/burned-gas.ts";
import { deleteOverdueData } from "../../db/queries/collected-data.ts";
import { deleteOldRequests } from "../../db/queries/operator-requests.ts";
import { deleteRenewedOptions } from "../../db/queries/payment-options.ts";
import { deleteOldAttempts as deleteOldDeliveryAttempts } from "../../db/queries/webhook-deliveries.ts";
import { memberNames } from "../../runtime/member-names.ts";
import { runEach } from "../../runtime/run-each.ts";
import { deleteExpiredResponses } from "../idempotency-keys.ts";
import { isTransient } from "../is-transient.ts";
import { QUOTE_GRACE_MS } from "../options/quotes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Rows that one statement deletes. */
const LIMIT = 5_000;
/** After this time, a run deletes no further rows of a kind, milliseconds: the sweep waits for it. */
const RUN_MS = 500;

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

type Deps = Pick<PaymentDeps, "db" | "now">;
type Kind = "collected" | "answers" | "attempts" | "gas" | "sent" | "requests" | "quotes";

/**
 * Deletes rows past their retention: buyer data, responses kept for idempotency, refused attempts with the results that
 * wallets sent, burned gas that no limit counts any more, requests to webhook endpoints, and renewed quotes that no money can match.
 * Returns the number of rows deleted of each kind. A kind whose rows cannot be deleted does not keep the others: the first error is
 * thrown after them.
 */
export async function cleanUp(deps: Deps): Promise<Record<Kind, number>> {
  const { db, now } = deps;
  const old = (ms: number) => ({ before: new Date(now().getTime() - ms), limit: LIMIT });
  const kinds: Record<Kind, () => Promise<number>> = {
    collected: () => deleteOverdueData(db, { now: now(), limit: LIMIT }),
    answers: () => deleteExpiredResponses(deps, LIMIT),
    attempts: () => deleteOldRefusedAttempts(db, old(REFUSED_MS)),
    gas: () => deleteOldBurnedGas(db, old(BURNED_MS)),
    sent: () => deleteOldDeliveryAttempts(db, old(SENT_MS)),
    requests: () => deleteOldRequests(db, old(REQUESTED_MS)),
    quotes: () => deleteQuotes(deps, { from: QUOTE_FOUND_MS, to: QUOTE_LIFETIME_MS }),
  };
  const deleted = { collected: 0, answers: 0, attempts: 0, gas: 0, sent: 0, requests: 0, quotes: 0 };
  await runEach(
    memberNames(kinds),
    async (kind) => {
      const began = performance.now();
      for (let count = LIMIT; count >= LIMIT && performance.now() - began < RUN_MS; deleted[kind] += count)
        count = await kinds[kind]();
    },
    { isTransient },
  );
  return deleted;
}

/**
 * Deletes the renewed quotes that `cleanUp` no longer looks for: those that were renewed `age` days ago, 0 to 29. A day's quotes are read
 * in one run, so that no statement reads those of a month. Returns the number of rows.
 */
export async function deleteLateQuotes(deps: Deps, age: number): Promise<number> {
  for (let deleted = 0; ; ) {
    const count = await deleteQuotes(deps, { from: (age + 1) * DAY_MS, to: age * DAY_MS });
    deleted += count;
    if (count < LIMIT) return deleted;
  }
}

/** Deletes renewed quotes. Their renewals were made between these times ago, milliseconds. */
function deleteQuotes({ db, now }: Deps, found: { from: number; to: number }): Promise<number> {
  const ago = (ms: number) => new Date(now().getTime() - ms);
  return deleteRenewedOptions(db, {
    window: { from: ago(found.from), to: ago(found.to) },
    over: ago(QUOTE_LIFETIME_MS),
    lateMs: QUOTE_GRACE_MS,
    limit: LIMIT,
  });
}
