import { sql } from "kysely";
import type { Db } from "./tables.ts";
import type { TransferRow } from "./transfers.ts";

/** Returns the transfers of these payers that wait for a lane or for a block: amounts that are authorized and not paid yet. */
export async function listPromised(
  db: Db,
  args: { chain: string; payers: readonly string[] },
): Promise<PromisedTransfer[]> {
  if (args.payers.length === 0) return [];
  return db
    .selectFrom("transfer")
    .select(["id", "kind", "token", "payer", "amount", "authorization_nonce"])
    .where("chain", "=", args.chain)
    .where(sql<boolean>`payer = any(${args.payers})`)
    .where("purpose", "=", "payment")
    .where(sql<boolean>`state in ('ready', 'carried')`)
    .execute();
}

export type PromisedTransfer = Pick<TransferRow, "id" | "kind" | "token" | "payer" | "amount" | "authorization_nonce">;
