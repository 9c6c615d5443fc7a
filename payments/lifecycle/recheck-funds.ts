import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import { listPendingTransfers } from "../../db/queries/pending-transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { VerificationResult } from "../../transfers/verification.ts";

/** Verification results by attempt. */
type Outcomes = ReadonlyMap<AttemptWithContext, VerificationResult>;

/** Returns true when the attempt was verified against its payer's balance. */
export function isCompared(outcomes: Outcomes, whole: AttemptWithContext): boolean {
  return countedOf(outcomes, whole) !== undefined;
}

function countedOf(outcomes: Outcomes, whole: AttemptWithContext): ReadonlySet<string> | undefined {
  const outcome = outcomes.get(whole);
  return outcome?.ok ? outcome.counted : undefined;
}

/**
 * Returns the attempts whose payers have committed no further funds since their balances were checked. Adds the others
 * to `raced`, to be verified again: another worker has accepted another payment of the same payer meanwhile. The caller has
 * locked the payers of the attempts that `isCompared` names.
 */
export async function keepFunded(
  db: Db,
  args: {
    outcomes: Outcomes;
    attempts: readonly AttemptWithContext[];
    raced: Set<AttemptWithContext>;
  },
): Promise<AttemptWithContext[]> {
  const compared = args.attempts.filter((whole) => isCompared(args.outcomes, whole));
  if (compared.length === 0) return [...args.attempts];
  const committed = new Map<string, string[]>();
  for (const [chain, here] of Map.groupBy(compared, ({ option }) => option.chain)) {
    const payers = here.map(({ option }) => option.payer);
    for (const { id, payer } of await listPendingTransfers(db, { chain, payers }))
      committed.set(`${chain} ${payer}`, [...(committed.get(`${chain} ${payer}`) ?? []), id]);
  }
  return args.attempts.filter((whole) => {
    const counted = countedOf(args.outcomes, whole);
    const now = committed.get(`${whole.option.chain} ${whole.option.payer}`) ?? [];
    if (counted === undefined || now.every((id) => counted.has(id))) return true;
    args.raced.add(whole);
    return false;
  });
}
