import { type RawBuilder, sql } from "kysely";
import { moveRows } from "../moves.ts";
import type { Db } from "../tables.ts";

/** A payment whose attempt was verified, with the quote that the attempt pays. */
type VerifiedPayment = {
  id: string;
  attemptId: string;
  option: { id: string; asset: string; direct: boolean; registered: string | null };
};

/**
 * Moves payments that await their buyer to `processing` and returns the ids of those that moved. A payment moves if its
 * attempt was created before the deadline, and if the destination that the buyer pays directly is still the merchant's.
 */
export async function moveToProcessing(db: Db, payments: readonly VerifiedPayment[], at: Date): Promise<string[]> {
  const options = JSON.stringify(Object.fromEntries(payments.map(({ id, option }) => [id, option.id])));
  const attemptIds = payments.map(({ attemptId }) => attemptId);
  return moveRows(db, "payment", {
    ids: payments.map(({ id }) => id),
    from: "requires_action",
    to: "processing",
    at,
    set: { due_at: null, option_id: sql<string>`${options}::jsonb ->> payment.id` },
    where: sql`exists (select from attempt a
      where a.payment_id = payment.id and a.id = any(${attemptIds}) and a.created_at <= payment.expires_at)
      and ${isStillDestination(payments)}`,
  });
}

/** SQL: the destination of a payment that the buyer pays to the merchant directly has not changed. */
function isStillDestination(payments: readonly VerifiedPayment[]): RawBuilder<boolean> {
  const direct = payments.filter(({ option }) => option.direct);
  const ids = direct.map(({ id }) => id);
  const assets = direct.map(({ option }) => option.asset);
  const destinations = direct.map(({ option }) => option.registered);
  return sql<boolean>`not exists (
    select from unnest(${ids}::text[], ${assets}::text[], ${destinations}::text[]) as f (id, asset, destination)
    where f.id = payment.id and not exists (select from settlement_destination d
      where d.merchant_id = payment.merchant_id and d.asset = f.asset and d.destination = f.destination))`;
}

/**
 * Moves payments in `processing` to `succeeded`, with the values of their transfers and options, and returns the ids of
 * those that moved.
 */
export async function moveToSucceeded(
  db: Db,
  payments: readonly { id: string; txHash: string }[],
  at: Date,
): Promise<string[]> {
  const ids = payments.map(({ id }) => id);
  const hashes = payments.map(({ txHash }) => txHash);
  const transfer = sql`from transfer t where t.payment_id = payment.id and t.purpose = 'payment'`;
  const option = sql`from payment_option o where o.id = payment.option_id`;
  const set = {
    fee: sql<bigint>`coalesce((select o.fee ${option}), 0)`,
    direct: sql<boolean>`coalesce((select o.direct ${option}), false)`,
    owed_asset: sql<string | null>`(select o.owed_asset ${option})`,
    owed_amount: sql<bigint | null>`(select o.owed_amount ${option})`,
    // The hashes are joined by payment id, so that one statement moves all payments.
    tx_id: sql<string>`(select f.hash from unnest(${ids}::text[], ${hashes}::text[]) as f (id, hash) where f.id = payment.id)`,
    paid_asset: sql<string>`(select t.asset ${transfer})`,
    paid_amount: sql<bigint>`(select t.amount ${transfer})`,
  };
  return moveRows(db, "payment", { ids, from: "processing", to: "succeeded", at, set });
}

/** The chains that decide when a payment can expire. */
export type ExpiryRules = {
  /** The chains of the networks file. */
  chains: readonly string[];
  /** Those of them that produce blocks on demand only, whose clock may stand still. */
  onDemand: readonly string[];
  /** On such a chain, how long before its block a timestamp may lie, milliseconds. */
  blockSecondMs: number;
  /** A payment does not wait for an asset that left the networks file before this time. */
  goneSince: Date;
};

/**
 * Moves a payment whose deadline has passed to `expired`. Returns false when it does not move: it does not await its buyer,
 * its deadline lies ahead, or a confirm or a movement from before the deadline may still be found. Test mode reads no chain.
 */
export async function moveToExpired(
  db: Db,
  { id, at, rules }: { id: string; at: Date; rules: ExpiryRules },
): Promise<boolean> {
  const isUndecided = sql`
    exists (select from attempt a where a.payment_id = payment.id and a.state = 'waiting')
    or (mode = 'live' and exists (
      select from payment_option o left join chain_cursor c on c.chain = o.chain
      where o.payment_id = payment.id and o.chain = any(${rules.chains})
        and (
          (o.asset = any(c.assets) or exists (select from asset_backfill u
            where u.chain = o.chain and u.asset = o.asset and u.since < ${rules.goneSince}))
          and (c.chain_time > payment.expires_at or (o.chain = any(${rules.onDemand})
            and c.reached_head_at > payment.expires_at + ${rules.blockSecondMs}::float8 * interval '1 millisecond'))
        ) is not true))`;
  const where = sql`expires_at <= ${at} and not (${isUndecided})`;
  const set = { due_at: null };
  const moved = await moveRows(db, "payment", { ids: [id], from: "requires_action", to: "expired", at, where, set });
  return moved.length > 0;
}
