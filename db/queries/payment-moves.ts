import { type RawBuilder, sql } from "kysely";
import { anyOf } from "../any-of.ts";
import { moveRows } from "../moves.ts";
import type { Db } from "../tables.ts";
import { isNamedByUnread } from "./history-entries.ts";
import type { PaymentRow } from "./payments.ts";

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
  const ids = payments.map(({ id }) => id);
  const attemptIds = payments.map(({ attemptId }) => attemptId);
  const optionIds = payments.map(({ option }) => option.id);
  const assets = payments.map(({ option }) => option.asset);
  return moveRows(db, "payment", {
    ids,
    from: "requires_action",
    to: "processing",
    at,
    set: { due_at: null, option_id: sql<string>`given.option_id`, asset: sql<string>`given.asset` },
    given: sql`unnest(${ids}::text[], ${optionIds}::text[], ${assets}::text[]) as given (id, option_id, asset)`,
    where: sql`exists (select from attempt a
      where a.payment_id = payment.id and a.id = ${anyOf(attemptIds)} and a.created_at <= payment.expires_at)
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

/** Makes a payment that stays in `processing` that of another quote. The caller has locked it. */
export async function changeQuote(
  db: Db,
  { id, option, at }: { id: string; option: { id: string; asset: string }; at: Date },
): Promise<void> {
  await db
    .updateTable("payment")
    .set({ option_id: option.id, asset: option.asset, updated_at: at })
    .where("id", "=", id)
    .where("state", "=", "processing")
    .execute();
}

/** A payment in `processing`, with the values of its option, and when its verified confirm was accepted. */
export type PayingPayment = Pick<
  PaymentRow,
  "id" | "merchant_id" | "mode" | "created_at" | "fee" | "direct" | "owed_asset" | "owed_amount"
> & { confirmed_at: Date | null };

/** Returns those of these payments that are in `processing`, locked until the commit in the order of their ids. */
export async function lockPaying(db: Db, ids: readonly string[]): Promise<PayingPayment[]> {
  const { rows } = await sql<PayingPayment>`
    select p.id, p.merchant_id, p.mode, p.created_at, coalesce(o.fee, 0) as fee, coalesce(o.direct, false) as direct,
      o.owed_asset, o.owed_amount,
      (select a.created_at from attempt a where a.payment_id = p.id and a.state = 'verified') as confirmed_at
    from payment p left join payment_option o on o.id = p.option_id
    where p.id = ${anyOf(ids)} and p.state = 'processing' order by p.id for update of p`.execute(db);
  return rows;
}

/** A payment whose transfer is confirmed. `settlementId`: the settlement that pays it out, when that is known already. */
export type PaidPayment = {
  payment: PayingPayment;
  txHash: string;
  asset: string;
  amount: bigint;
  settlementId: string | null;
};

/** Moves payments in `processing` to `succeeded`. Throws when one is not in `processing`; the caller has locked them. */
export async function moveToSucceeded(db: Db, paid: readonly PaidPayment[], at: Date): Promise<void> {
  const ids = paid.map(({ payment }) => payment.id);
  const column = <C extends "fee" | "direct" | "owed_asset" | "owed_amount">(name: C) =>
    paid.map(({ payment }) => payment[name]);
  const set = {
    fee: sql<bigint>`given.fee`,
    direct: sql<boolean>`given.direct`,
    owed_asset: sql<string | null>`given.owed_asset`,
    owed_amount: sql<bigint | null>`given.owed_amount`,
    tx_id: sql<string>`given.hash`,
    sent_by_others: sql<boolean>`not exists (
      select from transaction t where t.chain = split_part(given.asset, '/', 1) and t.hash = given.hash)`,
    paid_asset: sql<string>`given.asset`,
    paid_amount: sql<bigint>`given.amount`,
    settlement_id: sql<string | null>`given.settlement_id`,
  };
  const given = sql`unnest(
      ${ids}::text[], ${column("fee")}::numeric[], ${column("direct")}::boolean[], ${column("owed_asset")}::text[],
      ${column("owed_amount")}::numeric[], ${paid.map(({ txHash }) => txHash)}::text[],
      ${paid.map(({ asset }) => asset)}::text[], ${paid.map(({ amount }) => amount)}::numeric[],
      ${paid.map(({ settlementId }) => settlementId)}::text[]
    ) as given (id, fee, direct, owed_asset, owed_amount, hash, asset, amount, settlement_id)`;
  const moved = await moveRows(db, "payment", { ids, from: "processing", to: "succeeded", at, set, given });
  if (moved.length !== ids.length) throw new Error("a payment that was locked in processing has not moved");
}

/** The chains that decide when a payment can expire. */
export type ExpiryRules = {
  /** The chains of this process's networks file. */
  chains: readonly string[];
  /** Those of them that produce blocks on demand only, whose clock may stand still. */
  onDemand: readonly string[];
  /** On such a chain, how long before its block a timestamp may lie, milliseconds. */
  blockSecondMs: number;
  /**
   * A payment does not wait for an asset that left the networks file before this time, unless it is configured again, nor for
   * another chain than `chains` that no worker has had since.
   */
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
      where o.payment_id = payment.id and (o.chain <> all(${rules.chains}) and c.due_at < ${rules.goneSince}) is not true
        and (
          (o.asset = any(c.assets) or exists (select from asset_backfill u
            where u.chain = o.chain and u.asset = o.asset and u.until is null and u.since < ${rules.goneSince}))
          and (c.chain_time > payment.expires_at or (o.chain = any(${rules.onDemand})
            and c.reached_head_at > payment.expires_at + ${rules.blockSecondMs}::float8 * interval '1 millisecond'))
          and not ${isNamedByUnread("o")}
        ) is not true))`;
  const where = sql`expires_at <= ${at} and not (${isUndecided})`;
  const set = { due_at: null };
  const moved = await moveRows(db, "payment", { ids: [id], from: "requires_action", to: "expired", at, where, set });
  return moved.length > 0;
}
