import { sql } from "kysely";
import { isTracing } from "../../runtime/tracing/spans.ts";
import type { Db } from "../tables.ts";

/**
 * Returns the traces of payments by payment: the traceparent of the confirm that was verified. A payment whose confirm was not
 * sampled is not in the result. Asks the database only while tracing is on.
 */
export async function listPaymentTraces(
  db: Db,
  paymentIds: readonly (string | null)[],
): Promise<ReadonlyMap<string, string>> {
  const ids = paymentIds.filter((id) => id !== null);
  if (!isTracing() || ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("attempt")
    .select(["payment_id", "traceparent"])
    .where(sql<boolean>`payment_id = any(${ids})`)
    .where("state", "=", "verified")
    .where("traceparent", "is not", null)
    .execute();
  return new Map(rows.map(({ payment_id, traceparent }) => [payment_id, traceparent ?? ""]));
}
