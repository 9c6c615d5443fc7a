import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import { listPendingTransfers, lockPayers } from "../../db/queries/pending-transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { VerificationResult } from "../../transfers/verification.ts";

/**
 * Returns the attempts whose payers have committed no further funds since their balances were checked. Adds the others
 * to `raced`, to be verified again: another worker has accepted another payment of the same payer meanwhile. Locks the
 * payers for the rest of the transaction. Lock order: payments, attempts, then payers in key order.
 */
export async function keepFunded(
  db: Db,
  args: {
    outcomes: ReadonlyMap<AttemptWithContext, VerificationResult>;
    attempts: readonly AttemptWithContext[];
    raced: Set<AttemptWithContext>;
  },
): Promise<AttemptWithContext[]> {
  const countedOf = (whole: AttemptWithContext) => {
    const outcome = args.outcomes.get(whole);
    return outcome?.ok ? outcome.counted : undefined;
  };
  const compared = args.attempts.filter((whole) => countedOf(whole) !== undefined);
  if (compared.length === 0) return [...args.attempts];
  await lockPayers(
    db,
    compared.map(({ option }) => option),
  );
  const committed = new Map<string, string[]>();
  for (const [chain, here] of Map.groupBy(compared, ({ option }) => option.chain)) {
    const payers = here.map(({ option }) => option.payer);
    for (const { id, payer } of await listPendingTransfers(db, { chain, payers }))
      committed.set(`${chain} ${payer}`, [...(committed.get(`${chain} ${payer}`) ?? []), id]);
  }
  return args.attempts.filter((whole) => {
    const counted = countedOf(whole);
    const now = committed.get(`${whole.option.chain} ${whole.option.payer}`) ?? [];
    if (counted === undefined || now.every((id) => counted.has(id))) return true;
    args.raced.add(whole);
    return false;
  });
}
