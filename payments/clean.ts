import { sql } from "kysely";
import { deleteOldRefused } from "../db/attempts.ts";
import { deleteOldBurnedGas } from "../db/burned-gas.ts";
import type { PaymentDeps } from "./deps.ts";
import { forgetAnswers } from "./idempotency.ts";

/** Rows of a kind deleted in one go; more are left for the next. */
const LIMIT = 5_000;

/** How long refused attempts are kept, and what burned gas is counted by, milliseconds. */
const REFUSED_MS = 24 * 3_600_000;
const BURNED_MS = 48 * 3_600_000;

/**
 * Deletes what was to be kept for a while only: buyers' data past its time, answers kept for repeats, refused attempts with
 * what wallets had handed over, and gas that no limit counts any more.
 */
export async function cleanUp(
  deps: Pick<PaymentDeps, "db" | "now">,
): Promise<{ collected: number; answers: number; attempts: number; gas: number }> {
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
  };
}
