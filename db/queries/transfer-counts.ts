import { sql } from "kysely";
import type { Db, Kind } from "../tables.ts";

/** The number of failures after which a transfer counts as held: about half a minute. */
export const HELD_AFTER = 4;

/** Returns the number of transfers in each unfinished state, by chain. */
export async function countUnfinished(db: Db): Promise<{ chain: string; state: string; count: number }[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", "state", sql<number>`count(*)::int`.as("count")])
    .where("state", "not in", ["confirmed", "ended"])
    .groupBy(["chain", "state"])
    .execute();
}

/** The number of unfinished transfers of one asset and kind. */
export type UnfinishedKind = { chain: string; asset: string; kind: Kind; is_payment: boolean; count: number };
/** The number of waiting confirms of one asset and kind. */
export type WaitingKind = Pick<UnfinishedKind, "chain" | "asset" | "kind" | "count">;

/** Returns the number of waiting confirms of live payments by asset and kind. */
export async function listWaitingKinds(db: Db): Promise<WaitingKind[]> {
  const { rows } = await sql<WaitingKind>`
    select o.chain, o.asset, o.kind, count(*)::int as count from attempt a
    join payment_option o on o.id = a.option_id
    join payment p on p.id = a.payment_id and p.mode = 'live'
    where a.due_at is not null and a.state = 'waiting' group by o.chain, o.asset, o.kind order by o.asset, o.kind`.execute(
    db,
  );
  return rows;
}

/** Returns the number of unfinished transfers by asset and kind. */
export async function listUnfinishedKinds(db: Db): Promise<UnfinishedKind[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", "asset", "kind"])
    .select([sql<boolean>`purpose = 'payment'`.as("is_payment"), sql<number>`count(*)::int`.as("count")])
    .where("state", "not in", ["confirmed", "ended"])
    .groupBy(["chain", "asset", "kind", sql`purpose = 'payment'`])
    .orderBy("asset")
    .orderBy("kind")
    .execute();
}

/**
 * Returns the number of payments and the number of payouts, by chain, that have failed `HELD_AFTER` times or more before
 * they were sent.
 */
export async function countHeld(db: Db): Promise<{ chain: string; is_payment: boolean; count: number }[]> {
  return db
    .selectFrom("transfer")
    .select(["chain", sql<boolean>`purpose = 'payment'`.as("is_payment"), sql<number>`count(*)::int`.as("count")])
    .where("state", "=", "ready")
    .where("retries", ">=", HELD_AFTER)
    .groupBy(["chain", sql`purpose = 'payment'`])
    .execute();
}
