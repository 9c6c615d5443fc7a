import { moveRows } from "../../db/moves.ts";
import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** An attempt to refuse, with the reason for the caller. */
export type Refused = { whole: AttemptWithContext; reason: string };

/**
 * Refuses attempts. An attempt that another worker has verified meanwhile does not change. Attempts with the same
 * reason share a statement. Returns the errors by attempt id: an error of one statement does not affect the others.
 */
export async function refuseAttempts(deps: PaymentDeps, refusals: readonly Refused[]): Promise<Map<string, unknown>> {
  const failed = new Map<string, unknown>();
  for (const [reason, group] of Map.groupBy(refusals, ({ reason }) => reason)) {
    const ids = group.map(({ whole }) => whole.attempt.id);
    const move = { ids, from: "waiting" as const, to: "refused" as const, at: deps.now(), detail: { reason } };
    try {
      const moved = new Set(await moveRows(deps.db, "attempt", { ...move, set: { refusal: reason, due_at: null } }));
      for (const { attempt, option } of group.map(({ whole }) => whole))
        if (moved.has(attempt.id)) deps.metrics.attempts.inc({ outcome: "refused", kind: option.kind });
    } catch (error) {
      for (const id of ids) failed.set(id, error);
    }
  }
  return failed;
}
