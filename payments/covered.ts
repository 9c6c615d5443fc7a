import { sql } from "kysely";
import type { WholeAttempt } from "../db/attempts.ts";
import { listPromised } from "../db/promised.ts";
import type { Db } from "../db/tables.ts";
import type { Verdict } from "../transfers/verdict.ts";

/**
 * Leaves out attempts whose payers have promised more since their balances were compared: another process has accepted
 * another payment of theirs at the same moment. They are added to `raced`, to be verified again. The payers stay locked
 * for the rest of the transaction, in one order, after the payments and the attempts.
 */
export async function keepCovered(
  db: Db,
  args: {
    verdicts: ReadonlyMap<WholeAttempt, Verdict>;
    attempts: readonly WholeAttempt[];
    raced: Set<WholeAttempt>;
  },
): Promise<WholeAttempt[]> {
  const countedOf = (whole: WholeAttempt) => {
    const verdict = args.verdicts.get(whole);
    return verdict?.ok ? verdict.counted : undefined;
  };
  const compared = args.attempts.filter((whole) => countedOf(whole) !== undefined);
  if (compared.length === 0) return [...args.attempts];
  const keys = [...new Set(compared.map(({ option }) => `payer ${option.chain} ${option.payer}`))].sort();
  await sql`select pg_advisory_xact_lock(hashtextextended(key, 0)) from unnest(${keys}::text[]) as key`.execute(db);
  const promised = new Map<string, string[]>();
  for (const [chain, here] of Map.groupBy(compared, ({ option }) => option.chain)) {
    const payers = here.map(({ option }) => option.payer);
    for (const { id, payer } of await listPromised(db, { chain, payers }))
      promised.set(`${chain} ${payer}`, [...(promised.get(`${chain} ${payer}`) ?? []), id]);
  }
  return args.attempts.filter((whole) => {
    const counted = countedOf(whole);
    const now = promised.get(`${whole.option.chain} ${whole.option.payer}`) ?? [];
    if (counted === undefined || now.every((id) => counted.has(id))) return true;
    args.raced.add(whole);
    return false;
  });
}
