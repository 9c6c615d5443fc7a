import { batchCalls, isTimeout } from "../../db/batch-calls.ts";
import { type AttemptWithContext, listWaitingAttempts } from "../../db/queries/attempts.ts";
import { inSharedSpan } from "../../runtime/tracing/spans.ts";
import { isOneRows } from "../../runtime/transient-errors.ts";
import { type VerifyDeps, type VerifyResult, verifyBatch } from "./verify-attempts.ts";

/** Contract wallets verified concurrently. */
const WALLETS = 16;
/** Maximum batch size. A batch shares calls and a commit. */
const BATCH_SIZE = 100;

/**
 * Creates the function that verifies one attempt, in batches with others. A valid attempt moves its payment to
 * `processing` and creates its transfer. An invalid attempt is refused and does not change the payment. A valid one that
 * fails later gives way to money (docs/decisions/replaced-transfers.md).
 *
 * The function returns `by code` for an attempt whose payer turned out to be a contract wallet: the caller enqueues it
 * again, and it is then verified as such. It throws the chain's error when the chain cannot be read; the attempt then
 * waits. Attempts that arrive during a batch form the next batch of their group; groups do not wait for each other. An
 * attempt whose payment or payer another transaction has locked fails alone, with the database's error.
 *
 * A call for an attempt that is in progress returns `done` at once: while a chain hangs, the sweep enqueues its attempts again
 * and again, and the jobs would wait together.
 */
export function createVerify(
  deps: VerifyDeps & { isTransient: (cause: unknown) => boolean; withoutRequestContext: <T>(work: () => T) => T },
): (attemptId: string) => Promise<"done" | "by code"> {
  // An attempt that waits too long for a lock fails alone. After a statement timeout the others could time out one by one.
  const isOnes = (cause: unknown) => !deps.isTransient(cause) || (isOneRows(cause) && !isTimeout(cause));
  const shared = { most: BATCH_SIZE, isOnes };
  const find = batchCalls(async (ids: string[]) => {
    const waiting = await deps.withoutRequestContext(() => listWaitingAttempts(deps.db, ids));
    const byId = new Map(waiting.map((whole) => [whole.attempt.id, whole]));
    return ids.map((id) => byId.get(id));
  }, shared);
  const verifiers = new Map<string, (whole: AttemptWithContext) => Promise<VerifyResult>>();
  const payerOf = ({ option }: AttemptWithContext) => option.payer;
  const createVerifier = (isWallet: boolean) =>
    batchCalls(
      async (group: AttemptWithContext[]) => {
        const verify = () => traceVerification(group, (batch) => verifyBatch(deps, batch));
        const results = await deps.withoutRequestContext(verify);
        return group.map(({ attempt }) => results.get(attempt.id) ?? {});
      },
      isWallet ? { ...shared, most: WALLETS, keyOf: payerOf } : shared,
    );
  const verifyOne = async (attemptId: string) => {
    const whole = await find(attemptId);
    if (!whole) return "done";
    const group = groupOf(whole);
    const verify = verifiers.get(group) ?? createVerifier(whole.attempt.verification === "wallet");
    verifiers.set(group, verify);
    const result = await verify(whole);
    if ("error" in result) throw result.error;
    return result.byCode ? "by code" : "done";
  };
  const inProgress = new Set<string>();
  return async (attemptId) => {
    if (inProgress.has(attemptId)) return "done";
    inProgress.add(attemptId);
    return verifyOne(attemptId).finally(() => inProgress.delete(attemptId));
  };
}

/** Runs the verification of a batch in the traces of its attempts. */
function traceVerification<T>(
  batch: readonly AttemptWithContext[],
  work: (batch: readonly AttemptWithContext[]) => Promise<T>,
): Promise<T> {
  const members = batch.map(({ attempt, payment }) => ({
    trace: attempt.traceparent,
    attributes: { "pay.attempt.id": attempt.id, "pay.payment.id": payment.id },
  }));
  return inSharedSpan(
    members,
    () => ({ name: "verify", attributes: { "pay.batch.size": batch.length } }),
    () => work(batch),
  );
}

/**
 * Returns the group of an attempt. Key signatures wait neither for contract wallets nor for transactions that wallets
 * sent, and none waits for the price of another currency.
 */
function groupOf({ payment, option, attempt }: AttemptWithContext): string {
  return `${payment.mode} ${option.chain} ${attempt.verification} ${option.rate === null ? "same" : "priced"}`;
}
