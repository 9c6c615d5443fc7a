import { sql } from "kysely";
import type { PaymentDeps } from "./deps.ts";
import { forgetAnswers } from "./idempotency.ts";

/** Rows of a kind deleted in one go; more are left for the next. */
const LIMIT = 5_000;

/** Deletes what was to be kept for a while only: buyers' data past its time, and answers kept for repeats. */
export async function cleanUp(deps: Pick<PaymentDeps, "db" | "now">): Promise<{ collected: number; answers: number }> {
  const { numDeletedRows } = await deps.db
    .deleteFrom("collected_data")
    .where(
      sql<boolean>`id in (select id from collected_data where delete_at <= ${deps.now()} order by delete_at limit ${LIMIT})`,
    )
    .executeTakeFirst();
  return { collected: Number(numDeletedRows), answers: await forgetAnswers(deps, LIMIT) };
}
