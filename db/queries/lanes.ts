import { sql } from "kysely";
import { readHex } from "../../runtime/hex.ts";
import { fromNow } from "../clock.ts";
import type { Db } from "../tables.ts";
import { isUnreserved } from "./claim-transfers.ts";

/** A lease on a lane, with its fencing token: writes with an older fence match no row. */
export type LaneLease = { id: string; chain: string; address: string; fence: number; next_nonce: number };

/** Creates a lane. Keeps the nonce of a lane that exists. */
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

/** Leases one of these lanes that is free or whose lease has expired, and increments its fence. Returns undefined when there is none. */
export async function takeLane(
  db: Db,
  args: { chain: string; addresses: readonly string[]; owner: string; leaseMs: number },
): Promise<LaneLease | undefined> {
  const result = await sql<LaneLease>`
    update lane set owner = ${args.owner}, lease_until = ${fromNow(args.leaseMs)}, fence = fence + 1, wake_requested = false
    where id = (
      select id from lane
      where chain = ${args.chain} and address = any(${args.addresses}) and (lease_until is null or lease_until <= clock_timestamp())
      order by lease_until nulls first, id limit 1 for update skip locked
    )
    returning id, chain, address, fence, next_nonce`.execute(db);
  return result.rows[0];
}

/**
 * Asks the owners of these lanes to check for more ready transfers: `releaseLane` does not release a lane with such a
 * request. Returns false when none of the lanes is leased, so that the caller takes one itself.
 */
export async function wakeLanes(db: Db, args: LanesOfChain): Promise<boolean> {
  return (await requestWakes(db, args, 0)).leased > 0;
}

/** The lanes of a chain with these addresses. */
type LanesOfChain = { chain: string; addresses: readonly string[] };

/**
 * Asks the owners of these lanes to check for more ready transfers, as `wakeLanes` does. Returns true when they can send all
 * of them: every lane has an owner, or the next batches of those with a recently renewed lease have capacity for the transfers
 * that wait. Returns false when a job should take a free lane.
 * @param most transfers in one batch at most
 * @param recentMs a lane counts as working when its lease lasts at least this long, milliseconds
 */
export async function wakeEnoughLanes(
  db: Db,
  { most, recentMs, ...lanes }: LanesOfChain & { most: number; recentMs: number },
): Promise<boolean> {
  const { leased, working } = await requestWakes(db, lanes, recentMs);
  if (leased === lanes.addresses.length) return true;
  if (working === 0) return false;
  // A transfer that is sent alone takes a whole transaction.
  const capacity = working * most;
  const { rows } = await sql<{ waiting: number }>`
    select coalesce(sum(case when alone then ${most} else 1 end), 0)::int as waiting from (
      select t.alone from transfer t where t.chain = ${lanes.chain} and t.state = 'ready' and not t.smart_wallet
        and (t.hold_until is null or t.hold_until <= clock_timestamp()) and ${isUnreserved("t")} limit ${capacity + 1}
    ) unreserved`.execute(db);
  return (rows[0]?.waiting ?? 0) <= capacity;
}

/**
 * Requests a wake of those of these lanes that are leased, and returns their number and the number of those whose lease lasts
 * at least `recentMs`. Writes nothing for a lane whose wake has been requested already: its owner clears the request before it
 * checks. Locks the other lanes in the order of their ids, which avoids deadlocks between two requests.
 */
async function requestWakes(
  db: Db,
  { chain, addresses }: LanesOfChain,
  recentMs: number,
): Promise<{ leased: number; working: number }> {
  const { rows } = await sql<{ leased: number; working: number }>`
    with leased as (
      select id, wake_requested, lease_until > ${fromNow(recentMs)} as working from lane
      where chain = ${chain} and address = any(${addresses}) and lease_until > clock_timestamp()
    ), woken as (
      update lane set wake_requested = true where id in (
        select id from lane
        where id in (select id from leased where not wake_requested) and lease_until > clock_timestamp()
        order by id for update
      ) returning id
    ), awake as (select working from leased where wake_requested or id in (select id from woken))
    select count(*)::int as leased, (count(*) filter (where working))::int as working from awake`.execute(db);
  return rows[0] ?? { leased: 0, working: 0 };
}

/** Releases a lane, unless a wake was requested meanwhile: then clears the request and keeps the lease, and the owner checks for transfers once more. */
export async function releaseLane(db: Db, lease: LaneLease): Promise<"released" | "wake_requested" | "lost"> {
  const result = await sql<{ wake_requested: boolean }>`
    update lane set
      owner = case when wake_requested then owner end,
      lease_until = case when wake_requested then lease_until end,
      wake_requested = false
    from (select id, wake_requested as was_requested from lane where id = ${lease.id} and fence = ${lease.fence} for update) before
    where lane.id = before.id
    returning before.was_requested as wake_requested`.execute(db);
  const row = result.rows[0];
  if (!row) return "lost";
  return row.wake_requested ? "wake_requested" : "released";
}

/** Releases a lane even when a wake was requested, for an owner that cannot continue or has worked long enough. */
export async function freeLane(db: Db, lease: LaneLease): Promise<void> {
  await db
    .updateTable("lane")
    .set({ owner: null, lease_until: null })
    .where("id", "=", lease.id)
    .where("fence", "=", lease.fence)
    .execute();
}

/** Uses the lane's next nonce and renews the lease. Returns false when another owner has the lane or has used the nonce. */
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

/** Raises a lane's next nonce when the chain shows that a transaction that is not ours has used it. */
export async function skipUsedNonces(db: Db, args: { laneId: string; nextNonce: number }): Promise<void> {
  await db
    .updateTable("lane")
    .set({ next_nonce: args.nextNonce })
    .where("id", "=", args.laneId)
    .where("next_nonce", "<", args.nextNonce)
    .execute();
}

/**
 * Lowers a lane's next nonce to the one that the chain expects. Returns false and changes nothing when the lane is leased,
 * when its nonce has changed since, or when a transaction of ours has this nonce or a higher one.
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
        and t.state in ('signed', 'broadcast', 'accepted', 'included', 'final'))`)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

/** Returns the nonce that a lane uses next. */
export async function findNextNonce(db: Db, laneId: string): Promise<number | undefined> {
  const row = await db.selectFrom("lane").select("next_nonce").where("id", "=", laneId).executeTakeFirst();
  return row?.next_nonce;
}

/** Returns the address of an EVM lane from its id (CAIP-10). */
export function addressOfLane(laneId: string): `0x${string}` {
  return readHex(laneId.slice(laneId.lastIndexOf(":") + 1));
}
