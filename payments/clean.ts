import { sql } from "kysely";
import { deleteOldRefused } from "../db/attempts.ts";
import { deleteOldBurnedGas } from "../db/burned-gas.ts";
import { deleteRenewedOptions } from "../db/options.ts";
import type { PaymentDeps } from "./deps.ts";
import { forgetAnswers } from "./idempotency.ts";
import { LATE_QUOTE_MS } from "./paid-quotes.ts";

/** Rows of a kind deleted in one go; more are left for the next. */
const LIMIT = 5_000;

/** How long refused attempts are kept, and what burned gas is counted by, milliseconds. */
const REFUSED_MS = 24 * 3_600_000;
const BURNED_MS = 48 * 3_600_000;
/** How long a quote that nobody signed is kept after its end, once it was renewed; found for so long, milliseconds. */
const QUOTE_MS = 24 * 3_600_000;
const QUOTE_FOUND_MS = 30 * 24 * 3_600_000;

/**
 * Deletes what was to be kept for a while only: buyers' data past its time, answers kept for repeats, refused attempts with
 * what wallets had handed over, gas that no limit counts any more, and renewed quotes that no money can be for.
 */
export async function cleanUp(
  deps: Pick<PaymentDeps, "db" | "now">,
): Promise<{ collected: number; answers: number; attempts: number; gas: number; quotes: number }> {
  const ago = (ms: number) => new Date(deps.now().getTime() - ms);
  const { numDeletedRows } = await deps.db
    .deleteFrom("collected_data")
    .where(
      sql<boolean>`id in (select id from collected_data where delete_at <= ${deps.now()} order by delete_at limit ${LIMIT})`,
    )
    .executeTakeFirst();
  return {
    collected: Number(numDeletedRows),
    answers: await forgetAnswers(deps, LIMIT),
    attempts: await deleteOldRefused(deps.db, { before: ago(REFUSED_MS), limit: LIMIT }),
    gas: await deleteOldBurnedGas(deps.db, { before: ago(BURNED_MS), limit: LIMIT }),
    quotes: await deleteRenewedOptions(deps.db, {
      window: { from: ago(QUOTE_FOUND_MS), to: deps.now() },
      over: ago(QUOTE_MS),
      lateMs: LATE_QUOTE_MS,
      limit: LIMIT,
    }),
  };
}
