import type { RefusalReason } from "./refusals.ts";
import type { Store } from "./store.ts";

/** A receiver of a merchant's settlements of one asset, in the canonical form of its chain. */
export type Destination = { merchantId: string; asset: string; receiver: string };

const HOUR_MS = 3_600_000;

/** The time of a claim that applies only by an approval: the last one that Date can represent, Unix milliseconds. */
const NEVER = 8_640_000_000_000_000;

/**
 * Records a destination that a worker reports for the first time. A new merchant's first destination of an asset applies at
 * once until the merchant is paid, any other after the waiting period. A receiver that a statement has rejected applies only
 * by an approval. Call it inside a transaction.
 */
export function recordDestination(
  store: Store,
  { merchantId, asset, receiver }: Destination,
  { at, waitingHours }: { at: Date; waitingHours: number },
): void {
  const [newest] = listDestinations(store, { merchantId, asset });
  if (newest?.receiver === receiver || findApplied(store, { merchantId, asset }, at)?.receiver === receiver) return;
  const isFirst =
    !wasClaimed(store, { merchantId, asset }) &&
    !wasPaid(store, merchantId) &&
    isNewMerchant(store, merchantId, { at, waitingHours });
  const waitMs = isFirst ? 0 : waitingHours * HOUR_MS;
  const appliesAt = wasRejected(store, { merchantId, asset, receiver }) ? NEVER : at.getTime() + waitMs;
  store
    .prepare("insert into destination (merchant_id, asset, receiver, claimed_at, applies_at) values (?, ?, ?, ?, ?)")
    .run(merchantId, asset, receiver, at.getTime(), appliesAt);
}

/**
 * Records the destination that the service's rows have: the requested one while a change waits, otherwise the one that
 * applies. Other changes that wait were withdrawn or replaced. Returns true if its waiting period begins now. Call it inside a
 * transaction.
 */
export function reportDestination(
  store: Store,
  one: Destination,
  { at, waitingHours }: { at: Date; waitingHours: number },
): boolean {
  for (const row of listDestinations(store, one))
    if (row.applies_at > at.getTime() && row.receiver !== one.receiver)
      insertEvent(store, { id: row.id, kind: "replaced", at, statement: null, signer: null });
  const [before] = listDestinations(store, one);
  recordDestination(store, one, { at, waitingHours });
  const [newest] = listDestinations(store, one);
  return newest !== undefined && newest.id !== before?.id && newest.applies_at > at.getTime();
}

/** Returns how many claims wait, of all merchants. */
export function countWaiting(store: Store, at: Date): number {
  const row = store
    .prepare(
      `select count(*) as count from destination d where d.applies_at > ? and not exists (
        select 1 from destination_event e where e.destination_id = d.id)`,
    )
    .get(at.getTime());
  return Number(row?.["count"]);
}

/** Returns the claim of a receiver that waits, the newest first. */
export function findWaiting(store: Store, one: Destination, at: Date): Row | undefined {
  return listDestinations(store, one).find((row) => row.receiver === one.receiver && row.applies_at > at.getTime());
}

/** Records what ends the waiting period of a claim. Call it inside a transaction. */
export function insertEvent(
  store: Store,
  event: { id: number; kind: "approved" | "rejected" | "replaced"; at: Date } & (
    | { statement: string; signer: string }
    | { statement: null; signer: null }
  ),
): void {
  store
    .prepare("insert into destination_event (destination_id, kind, statement, signer, at) values (?, ?, ?, ?, ?)")
    .run(event.id, event.kind, event.statement, event.signer, event.at.getTime());
}

/** Returns true if a statement has decided on a claim before. */
export function wasStatementUsed(store: Store, text: string): boolean {
  return store.prepare("select 1 from destination_event where statement = ?").get(text) !== undefined;
}

/** Returns why a merchant must not be paid to a receiver now, or undefined. */
export function findDestinationRefusal(
  store: Store,
  { merchantId, asset, receiver }: Destination,
  at: Date,
): Extract<RefusalReason, "destination_unapproved" | "destination_waiting"> | undefined {
  if (findApplied(store, { merchantId, asset }, at)?.receiver === receiver) return undefined;
  const isKnown = listDestinations(store, { merchantId, asset }).some((one) => one.receiver === receiver);
  return isKnown ? "destination_waiting" : "destination_unapproved";
}

/**
 * Returns true while every destination of the merchant is younger than the waiting period, also while there is none. The lower
 * limit for new merchants applies until then.
 */
export function isNewMerchant(
  store: Store,
  merchantId: string,
  { at, waitingHours }: { at: Date; waitingHours: number },
): boolean {
  const row = store.prepare("select min(claimed_at) as first from destination where merchant_id = ?").get(merchantId);
  return typeof row?.["first"] !== "number" || at.getTime() - row["first"] < waitingHours * HOUR_MS;
}

/** A claim; `applies_at` in Unix milliseconds, after an approval the time of that. */
type Row = { id: number; receiver: string; applies_at: number };

/** Returns the destinations of a merchant and asset that were neither rejected nor replaced, the newest claim first. */
function listDestinations(store: Store, { merchantId, asset }: Omit<Destination, "receiver">): Row[] {
  return store
    .prepare(
      `select d.id, d.receiver, min(d.applies_at, coalesce(
        (select min(e.at) from destination_event e where e.destination_id = d.id and e.kind = 'approved'), d.applies_at))
        as applies_at
      from destination d where d.merchant_id = ? and d.asset = ? and not exists (
        select 1 from destination_event e where e.destination_id = d.id and e.kind <> 'approved')
      order by d.id desc`,
    )
    .all(merchantId, asset) as Row[];
}

function findApplied(store: Store, of: Omit<Destination, "receiver">, at: Date): Row | undefined {
  return listDestinations(store, of).find(({ applies_at }) => applies_at <= at.getTime());
}

function wasClaimed(store: Store, { merchantId, asset }: Omit<Destination, "receiver">): boolean {
  const query = "select 1 from destination where merchant_id = ? and asset = ? limit 1";
  return store.prepare(query).get(merchantId, asset) !== undefined;
}

function wasRejected(store: Store, { merchantId, asset, receiver }: Destination): boolean {
  const query = `select 1 from destination d join destination_event e on e.destination_id = d.id
    where d.merchant_id = ? and d.asset = ? and d.receiver = ? and e.kind = 'rejected' limit 1`;
  return store.prepare(query).get(merchantId, asset, receiver) !== undefined;
}

function wasPaid(store: Store, merchantId: string): boolean {
  return (
    store.prepare("select 1 from payout where merchant_id = ? and kind = 'settlement' limit 1").get(merchantId) !==
    undefined
  );
}
