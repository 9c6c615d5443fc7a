import { isRowError } from "../../db/row-errors.ts";

/** The result of a transaction that begins payouts: those that have begun, or why it was rolled back. */
type Attempt<Payout, Why> = { ok: true; begun: Payout[] } | { ok: false; why: Why };
/** `failed`: payouts that cannot be written, with their errors. They stay due. */
type Begun<Payout, Why> = {
  begun: Payout[];
  waiting: { payout: Payout; why: Why }[];
  failed: { payout: Payout; error: unknown }[];
};

/**
 * Begins payouts in one transaction. If it is rolled back, or a row cannot be written, begins each payout in a transaction of its own, so
 * that the payouts that can begin do not wait for the others. Throws transient errors.
 * @param args.concernsAll returns true for a reason that every payout would have, too
 */
export async function beginEach<Payout, Why>(
  payouts: readonly Payout[],
  args: { tryBegin: (some: readonly Payout[]) => Promise<Attempt<Payout, Why>>; concernsAll: (why: Why) => boolean },
): Promise<Begun<Payout, Why>> {
  const result: Begun<Payout, Why> = { begun: [], waiting: [], failed: [] };
  if (payouts.length === 0) return result;
  const batch = await args.tryBegin(payouts).catch((error: unknown) => {
    if (!isRowError(error)) throw error;
    return { error };
  });
  if ("ok" in batch && batch.ok) return { ...result, begun: batch.begun };
  if ("ok" in batch && (payouts.length === 1 || args.concernsAll(batch.why)))
    return { ...result, waiting: payouts.map((payout) => ({ payout, why: batch.why })) };
  if ("error" in batch && payouts.length === 1)
    return { ...result, failed: payouts.map((payout) => ({ payout, error: batch.error })) };
  for (const payout of payouts) {
    const { begun, waiting, failed } = await beginEach([payout], args);
    result.begun.push(...begun);
    result.waiting.push(...waiting);
    result.failed.push(...failed);
  }
  return result;
}
