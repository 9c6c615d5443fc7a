import {
  advanceRetention,
  listOldPayments,
  listRetriedPayments,
  lockRetention,
  type RemovedRows,
  removeHistoryRows,
  retainFailing,
  retainPayments,
  storeRetentionDays,
} from "../../db/queries/retention.ts";
import { runInSavepoints } from "../../db/savepoint.ts";
import type { RetainedRelation } from "../../db/tables.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { ExportHistory } from "./export-history.ts";

/** After how many days the rows of a table leave; null: never. */
export type RetentionDays = Readonly<Record<RetainedRelation, number | null>>;

/** The order of batches: attempts leave before their quotes, and webhook events before the moves that their payloads name. */
const order = ["attempt", "webhook_event", "event", "payment_option"] as const satisfies readonly RetainedRelation[];

/** Payments in one transaction: half of them new, half of them passed before. */
const BATCH = 500;
/** After this time a run begins no further batch, milliseconds. */
const RUN_MS = 20_000;
/** When payments are checked again of which some rows had to stay, milliseconds. */
const RETRY_MS = 24 * 3_600_000;
const DAY_MS = 24 * 3_600_000;
/** Longest error text that is stored, characters. */
const MAX_ERROR_LENGTH = 500;

type Deps = Pick<PaymentDeps, "db" | "log" | "metrics" | "now">;
type Settings = { days: RetentionDays; exportHistory: ExportHistory | undefined };

/**
 * Removes the history of payments that have been at rest for longer than the retention of each table, in batches, for at
 * most 20 seconds: one batch of each table after another, so that no table waits for the backlog of another one. Exports the
 * rows before the commit that removes them. Workers may run it at the same time: one at a time works on a table. A payment whose rows
 * cannot be removed is passed, logged and tried again after a day. Throws transient errors, and the error of an export, after which the
 * rows of the batch are still there.
 */
export async function removeHistory(deps: Deps, settings: Settings): Promise<void> {
  await storeRetentionDays(deps.db, settings.days);
  const end = performance.now() + RUN_MS;
  const now = deps.now().getTime();
  let tables = order.flatMap((relation) => {
    const days = settings.days[relation];
    return days === null ? [] : [{ relation, before: new Date(now - days * DAY_MS) }];
  });
  while (tables.length > 0) {
    const unfinished: typeof tables = [];
    for (const table of tables) {
      if (performance.now() >= end) return;
      if (await removeBatch(deps, { ...settings, ...table })) unfinished.push(table);
    }
    tables = unfinished;
  }
}

type Batch = Settings & { relation: RetainedRelation; before: Date };

/** Works through the next payments of a table. Returns false when there are none, or when another worker has the table. */
async function removeBatch(deps: Deps, { relation, before, exportHistory }: Batch): Promise<boolean> {
  const now = deps.now();
  const retryAt = new Date(now.getTime() + RETRY_MS);
  const removed = await deps.db.transaction().execute(async (db) => {
    const progress = await lockRetention(db, relation);
    if (!progress) return undefined;
    const passed = await listRetriedPayments(db, { relation, now, limit: BATCH / 2 });
    const next = await listOldPayments(db, { progress, before, limit: BATCH / 2 });
    const paymentIds = [...new Set([...passed, ...next])];
    if (paymentIds.length === 0) {
      await advanceRetention(db, { relation, after: undefined, removed: 0, at: now });
      return undefined;
    }
    const parts = await runInSavepoints(db, paymentIds, {
      work: async (ids) => {
        const rows = await removeHistoryRows(db, { relation, paymentIds: ids, before, exported: !!exportHistory });
        await retainPayments(db, { relation, paymentIds: ids, retryAt });
        return rows;
      },
      fail: async (payment_id, error) => {
        const text = cleanText(error instanceof Error ? error.message : String(error), MAX_ERROR_LENGTH);
        deps.log.error({ payment: payment_id, relation, error: text }, "history cannot be removed");
        await retainFailing(db, { relation, payment_id, retry_at: retryAt, error: text });
      },
    });
    const rows = parts.flat();
    const count = rows.reduce((sum, part) => sum + part.removed, 0);
    if (exportHistory && count > 0) await exportHistory({ relation, firstPayment: paymentIds[0] ?? "", rows });
    await advanceRetention(db, { relation, after: next.at(-1), removed: count, at: now });
    return rows;
  });
  if (!removed) return false;
  countRemoved(deps, removed);
  return true;
}

function countRemoved({ metrics }: Pick<Deps, "metrics">, rows: readonly RemovedRows[]): void {
  for (const { relation, removed } of rows) metrics.retentionRemoved.inc({ relation }, removed);
}
