import { sql } from "kysely";
import { readFamilyRow } from "../chain-families.ts";
import type { Db } from "../tables.ts";
import type { EvmTransferRow, SolanaTransferRow } from "./transfers.ts";

const columns = ["id", "kind", "token", "payer", "receiver", "amount", "authorization_nonce", "valid_before"] as const;

type PendingColumn = (typeof columns)[number];
export type EvmPendingTransfer = Pick<EvmTransferRow, PendingColumn>;
type PendingTransfer = EvmPendingTransfer | Pick<SolanaTransferRow, PendingColumn>;

/** Returns the transfers of these payers that wait for a lane or for a block: amounts that are authorized and not paid yet. */
export async function listPendingTransfers(
  db: Db,
  args: { chain: string; payers: readonly string[] },
): Promise<PendingTransfer[]> {
  if (args.payers.length === 0) return [];
  const rows = await db
    .selectFrom("transfer")
    .select(columns)
    .where("chain", "=", args.chain)
    .where(sql<boolean>`payer = any(${args.payers})`)
    .where("purpose", "=", "payment")
    .where(sql<boolean>`state in ('ready', 'assigned')`)
    .execute();
  return rows.map(readFamilyRow);
}

/** Locks payers until the commit, in the order of their keys. */
export async function lockPayers(db: Db, payers: readonly { chain: string; payer: string }[]): Promise<void> {
  const keys = [...new Set(payers.map(({ chain, payer }) => `payer ${chain} ${payer}`))].sort();
  await sql`select pg_advisory_xact_lock(hashtextextended(key, 0)) from unnest(${keys}::text[]) as key`.execute(db);
}
