import { sql } from "kysely";
import { fromNow } from "./clock.ts";
import type { Db } from "./tables.ts";

/** A lane in one owner's hands: writes with an older fence match no row. */
export type LaneLease = { id: string; chain: string; address: string; fence: number; nextNonce: number };

/** Makes a lane known; one that is there keeps its nonce. */
export async function ensureLane(
  db: Db,
  lane: { id: string; chain: string; address: string; nextNonce: number },
): Promise<void> {
  await db
    .insertInto("lane")
    .values({ id: lane.id, chain: lane.chain, address: lane.address, next_nonce: lane.nextNonce })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Takes a free lane among some (or one whose owner's time is up), raising its fence. Undefined when there is none. */
export async function takeLane(
  db: Db,
  args: { chain: string; addresses: readonly string[]; owner: string; leaseMs: number },
): Promise<LaneLease | undefined> {
  const result = await sql<LaneLease>`
    update lane set owner = ${args.owner}, lease_until = ${fromNow(args.leaseMs)}, fence = fence + 1, rung = false
    where id = (
      select id from lane
      where chain = ${args.chain} and address = any(${args.addresses}) and (lease_until is null or lease_until <= clock_timestamp())
      order by lease_until nulls first, id limit 1 for update skip locked
    )
    returning id, chain, address, fence, next_nonce as "nextNonce"`.execute(db);
  return result.rows[0];
}

/**
 * Tells whoever holds one of these lanes that more is ready: the holder cannot let go without seeing it.
 * False when no lane is held, so that the caller takes one itself.
 */
export async function ringLanes(db: Db, args: { chain: string; addresses: readonly string[] }): Promise<boolean> {
  const result = await db
    .updateTable("lane")
    .set({ rung: true })
    .where("chain", "=", args.chain)
    .where("address", "in", args.addresses)
    .where(sql<boolean>`lease_until > clock_timestamp()`)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Gives a lane back, unless it was rung meanwhile: then the ring is cleared, the lane kept, and its owner looks again. */
export async function releaseLane(db: Db, lease: LaneLease): Promise<"released" | "rung" | "lost"> {
  const result = await sql<{ rung: boolean }>`
    update lane set
      owner = case when rung then owner end,
      lease_until = case when rung then lease_until end,
      rung = false
    from (select id, rung as was_rung from lane where id = ${lease.id} and fence = ${lease.fence} for update) before
    where lane.id = before.id
    returning before.was_rung as rung`.execute(db);
  const row = result.rows[0];
  if (!row) return "lost";
  return row.rung ? "rung" : "released";
}

/** Gives a lane back whatever was rung: for an owner that cannot go on, or has gone on long enough. */
export async function freeLane(db: Db, lease: LaneLease): Promise<void> {
  await db
    .updateTable("lane")
    .set({ owner: null, lease_until: null })
    .where("id", "=", lease.id)
    .where("fence", "=", lease.fence)
    .execute();
}

/** Uses up the lane's next nonce and renews the lease. False when somebody else holds the lane or has used the nonce. */
export async function useNonce(db: Db, lease: LaneLease, args: { nonce: number; leaseMs: number }): Promise<boolean> {
  const result = await db
    .updateTable("lane")
    .set({ next_nonce: args.nonce + 1, lease_until: fromNow(args.leaseMs) })
    .where("id", "=", lease.id)
    .where("fence", "=", lease.fence)
    .where("next_nonce", "=", args.nonce)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** After the chain has said that a nonce is used by a transaction that is not ours: never offers a used one again. */
export async function skipUsedNonces(db: Db, args: { laneId: string; nextNonce: number }): Promise<void> {
  await db
    .updateTable("lane")
    .set({ next_nonce: args.nextNonce })
    .where("id", "=", args.laneId)
    .where("next_nonce", "<", args.nextNonce)
    .execute();
}

/**
 * Leads a lane back to a lower nonce that the chain expects of it. False, and nothing changed, when somebody holds the lane,
 * when it has moved since, or when a transaction of ours holds the nonce or a higher one.
 */
export async function lowerNextNonce(db: Db, args: { laneId: string; from: number; to: number }): Promise<boolean> {
  const result = await db
    .updateTable("lane")
    .set({ next_nonce: args.to })
    .where("id", "=", args.laneId)
    .where("next_nonce", "=", args.from)
    .where(sql<boolean>`(lease_until is null or lease_until <= clock_timestamp())`)
    .where(sql<boolean>`not exists (
      select from transaction t where t.lane_id = lane.id and t.nonce >= ${args.to}
        and t.state in ('signed', 'offered', 'accepted', 'included', 'final'))`)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** The nonce a lane uses next. */
export async function findNextNonce(db: Db, laneId: string): Promise<number | undefined> {
  const row = await db.selectFrom("lane").select("next_nonce").where("id", "=", laneId).executeTakeFirst();
  return row?.next_nonce;
}

/** The address of a lane, from its id (CAIP-10). */
export function addressOfLane(laneId: string): `0x${string}` {
  return laneId.slice(laneId.lastIndexOf(":") + 1) as `0x${string}`;
}
