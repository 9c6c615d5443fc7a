import { sql } from "kysely";
import { anyOf } from "../any-of.ts";
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

/**
 * Locks payments, those of the attempts that still wait, and payers, until the commit. Returns the ids of the locked attempts.
 * Until the commit, each statement waits for a lock for at most `lockWaitMs`, and then fails with SQLSTATE 55P03.
 * One statement, in the order payments, attempts, payers, and each in the order of their keys, which avoids deadlocks: each
 * part begins when the one before has its locks.
 */
export async function lockForAcceptance(
  db: Db,
  args: {
    paymentIds: readonly string[];
    attemptIds: readonly string[];
    payers: readonly { chain: string; payer: string }[];
    lockWaitMs: number;
  },
): Promise<string[]> {
  const payers = args.payers.map(({ chain, payer }) => `${chain} ${payer}`);
  const { rows } = await sql<{ id: string }>`
    with limited as materialized (
      select set_config('lock_timeout', ${String(args.lockWaitMs)}, true)
    ), locked_payment as materialized (
      select id from payment where id = ${anyOf(args.paymentIds)} and (select count(*) from limited) >= 0
      order by id for update
    ), locked_attempt as materialized (
      select id from attempt where id = ${anyOf(args.attemptIds)} and state = 'waiting'
        and (select count(*) from locked_payment) >= 0
      order by id for update
    ), locked_payer as materialized (
      select lock_payers(${payers}::text[]) where (select count(*) from locked_attempt) >= 0
    )
    select id from locked_attempt where (select count(*) from locked_payer) >= 0`.execute(db);
  return rows.map(({ id }) => id);
}
