import { sql } from "kysely";
import type { Db } from "../tables.ts";
import type { TransferRow } from "./transfers.ts";

/** Returns the transfers of these payers that wait for a lane or for a block: amounts that are authorized and not paid yet. */
export async function listPendingTransfers(
  db: Db,
  args: { chain: string; payers: readonly string[] },
): Promise<PendingTransfer[]> {
  if (args.payers.length === 0) return [];
  return db
    .selectFrom("transfer")
    .select(["id", "kind", "token", "payer", "amount", "authorization_nonce"])
    .where("chain", "=", args.chain)
    .where(sql<boolean>`payer = any(${args.payers})`)
    .where("purpose", "=", "payment")
    .where(sql<boolean>`state in ('ready', 'assigned')`)
    .execute();
}

export type PendingTransfer = Pick<TransferRow, "id" | "kind" | "token" | "payer" | "amount" | "authorization_nonce">;

/** Locks payers until the commit, in the order of their keys. */
export async function lockPayers(db: Db, payers: readonly { chain: string; payer: string }[]): Promise<void> {
  const keys = [...new Set(payers.map(({ chain, payer }) => `payer ${chain} ${payer}`))].sort();
  await sql`select pg_advisory_xact_lock(hashtextextended(key, 0)) from unnest(${keys}::text[]) as key`.execute(db);
}
