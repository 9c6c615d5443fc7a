import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** Returns those of these accounts that our transactions created. */
export async function listCreatedAccounts(
  db: Db,
  args: { chain: string; addresses: readonly string[] },
): Promise<Set<string>> {
  const rows = await db
    .selectFrom("created_account")
    .select("address")
    .where("chain", "=", args.chain)
    .where(sql<boolean>`address = any(${args.addresses})`)
    .execute();
  return new Set(rows.map(({ address }) => address));
}

/** Records accounts that a final transaction of ours created. */
export async function recordCreatedAccounts(
  db: Db,
  rows: readonly { chain: string; address: string; tx_hash: string; created_at: Date }[],
): Promise<void> {
  if (rows.length === 0) return;
  await db
    .insertInto("created_account")
    .values([...rows])
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
