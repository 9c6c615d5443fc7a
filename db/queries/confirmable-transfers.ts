import { type Selectable, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { moveRows } from "../moves.ts";
import type { Db, Tables } from "../tables.ts";
import { isBookable } from "./failed-bookings.ts";

/**
 * A transfer with the log that proves it. `observed_amount` is the log's amount; it differs from the transfer's `amount`
 * only for an adopted payout that paid more than is owed.
 */
export type ConfirmedTransfer = Pick<
  Selectable<Tables["transfer"]>,
  "id" | "purpose" | "payment_id" | "settlement_id" | "refund_id" | "chain" | "asset" | "receiver" | "amount"
> &
  Pick<Selectable<Tables["observation"]>, "block_number" | "block_id" | "tx_hash" | "log_index"> &
  Pick<
    Selectable<Tables["observation"]>,
    "token" | "payer" | "authorization_nonce" | "recorded_late" | "observed_at"
  > & {
    observed_amount: bigint;
  };

/** The log of a movement, by its place and by what it shows. */
export type ProofLog = Pick<
  Selectable<Tables["observation"]>,
  "block_number" | "block_id" | "log_index" | "token" | "payer" | "receiver" | "amount"
>;

/** Returns included transfers of blocks up to a height, oldest first, without those whose booking failed recently. */
export async function listConfirmable(
  db: Db,
  args: { chain: string; upTo: number; limit: number; except?: readonly string[] },
): Promise<ConfirmedTransfer[]> {
  return proofs(db)
    .where(sql<boolean>`t.id <> all(${args.except ?? []}::text[])`)
    .where("t.chain", "=", args.chain)
    .where(sql<boolean>`t.state = 'included'`)
    .where("s.block_number", "<=", args.upTo)
    .where(isBookable("transfer", { chain: "t.chain", subject: sql.ref("t.id") }))
    .limit(args.limit)
    .execute();
}

/** Returns the logs of a range of blocks that are still to be booked: they prove included transfers, or are unmatched. */
export async function listProofsBetween(
  db: Db,
  args: { chain: string; from: number; to: number },
): Promise<ProofLog[]> {
  return db
    .selectFrom("observation as s")
    .leftJoin("transfer as t", "t.id", "s.transfer_id")
    .select(["s.block_number", "s.block_id", "s.log_index", "s.token", "s.payer", "s.receiver", "s.amount"])
    .where("s.chain", "=", args.chain)
    .where("s.orphaned", "=", false)
    .where(sql<boolean>`(t.state = 'included' or (s.transfer_id is null and not s.booked))`)
    .where("s.block_number", ">=", args.from)
    .where("s.block_number", "<=", args.to)
    .execute();
}

/**
 * Confirms the transfers whose proving observation is not orphaned and at or below a height. Returns them with their
 * proofs as they are now, in the order of the chain.
 */
export async function confirmTransfers(
  db: Db,
  args: { ids: readonly string[]; upTo: number; at: Date },
): Promise<ConfirmedTransfer[]> {
  const moved = await moveRows(db, "transfer", {
    ids: args.ids,
    from: "included",
    to: "confirmed",
    at: args.at,
    where: sql`exists (
      select from observation s where s.transfer_id = transfer.id and not s.orphaned and s.block_number <= ${args.upTo})`,
  });
  if (moved.length === 0) return [];
  return proofs(db)
    .where(sql<boolean>`t.id = ${anyOf(moved)}`)
    .execute();
}

/** Selects transfers (`t`) with the observations that prove them (`s`), in the order of the chain. */
function proofs(db: Db) {
  return db
    .selectFrom("transfer as t")
    .innerJoin("observation as s", (join) => join.onRef("s.transfer_id", "=", "t.id").on("s.orphaned", "=", false))
    .select([
      "t.id",
      "t.purpose",
      "t.payment_id",
      "t.settlement_id",
      "t.refund_id",
      "t.chain",
      "t.asset",
      "t.receiver",
      "t.amount",
    ])
    .select(["s.block_number", "s.block_id", "s.tx_hash", "s.log_index", "s.amount as observed_amount"])
    .select(["s.token", "s.payer", "s.authorization_nonce", "s.recorded_late", "s.observed_at"])
    .orderBy("s.block_number")
    .orderBy("s.log_index");
}
