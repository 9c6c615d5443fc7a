import { isDeepStrictEqual } from "node:util";
import { type Actor, insertAudited, ownActor } from "./audit/entries.ts";
import type { RefusalReason } from "./refusals.ts";
import { mayHaveLostDestinations } from "./retired-treasuries.ts";
import type { Store } from "./store.ts";

/** A receiver of a merchant's settlements of one asset, in the canonical form of its chain. */
export type Destination = { merchantId: string; asset: string; receiver: string };

/**
 * A destination of a worker's report. `applied`: the service pays to it. `requested`: a change to it waits. `past`: a change to it
 * has applied or was rejected, and it is neither of the others any more.
 */
export type Reported = Destination & { state: "applied" | "requested" | "past" };

const HOUR_MS = 3_600_000;

/** The time of a claim that applies only by an approval: the last one that Date can represent, Unix milliseconds. */
const NEVER = 8_640_000_000_000_000;

/** Who reports a claim, and what decides when it applies. `isHeld`: none applies now, because of a pause or after a stop. */
export type Period = { at: Date; waitingHours: number; isHeld: boolean; actor: Actor };

/** What became of a claim that was recorded: it waits, or it is a new merchant's first destination and applies at once. */
export type Recorded = "waits" | "first";

/**
 * Records a destination that a worker names for the first time. A new merchant's first destination of an asset applies at
 * once until the merchant is paid, any other after the waiting period, as does every one that the loss of a store may have made
 * the first. A receiver that a statement has rejected applies only by an approval. The receiver that applies waits as well when a
 * change back to it is requested, so that it follows the claim that waits. Returns undefined for a destination that waits or applies
 * already, and for one that is not a first one and has no waiting period. Call it inside a transaction.
 */
export function recordDestination(
  store: Store,
  { state, ...one }: Destination & Partial<Reported>,
  { at, waitingHours, isHeld, actor }: Period,
): Recorded | undefined {
  const { merchantId, asset } = one;
  if (findWaiting(store, one) || (isInForce(store, one) && state !== "requested")) return undefined;
  const firstClaim = findFirstClaim(store, merchantId);
  const isFirst =
    !wasClaimed(store, { merchantId, asset }) &&
    !wasPaid(store, merchantId) &&
    !mayHaveLostDestinations(store, merchantId) &&
    (firstClaim === undefined || at.getTime() - firstClaim < waitingHours * HOUR_MS);
  const waitMs = isFirst ? 0 : waitingHours * HOUR_MS;
  const isAtOnce = waitMs === 0 && !isHeld;
  const appliesAt = wasRejected(store, one) ? NEVER : isAtOnce ? null : at.getTime() + waitMs;
  insertDestination(store, one, { at, appliesAt, actor });
  if (appliesAt !== null) return "waits";
  return isFirst ? "first" : undefined;
}

/**
 * Records a claim. Call it inside a transaction.
 * @param of.appliesAt null if it applies at once
 */
export function insertDestination(
  store: Store,
  { merchantId: merchant_id, asset, receiver }: Destination,
  {
    at,
    claimedAt: claimed_at = at.getTime(),
    appliesAt: applies_at,
    actor,
  }: { at: Date; claimedAt?: number; appliesAt: number | null; actor: Actor },
): number {
  const row = { merchant_id, asset, receiver, claimed_at, applies_at };
  const id = insertAudited(store, { table: "destination", row, action: "destination.claimed", actor, at });
  if (id === undefined) throw new Error("the claim exists already");
  return id;
}

/**
 * Records a past destination that the signer has not heard of, so that its audit log has it. The claim never applies, and
 * `endOtherClaims` ends it. Returns false if the destination waits or applies already. Call it inside a transaction.
 */
export function recordPast(store: Store, one: Destination, { at, actor }: Period): boolean {
  if (findWaiting(store, one) || isInForce(store, one)) return false;
  insertDestination(store, one, { at, appliesAt: NEVER, actor });
  return true;
}

/**
 * Ends the claims of the reported merchants and assets that wait, except for the receivers that are requested, and for the one that
 * the service pays to unless it is in force. The report has all that the service's rows have, so other changes were withdrawn or replaced.
 * Call it inside a transaction, after the reported ones are recorded.
 */
export function endOtherClaims(store: Store, reported: readonly Reported[], { at, actor }: Period): void {
  const isWanted = (one: Destination) =>
    reported.some(
      ({ state, ...other }) =>
        isDeepStrictEqual(other, one) && (state === "requested" || (state === "applied" && !isInForce(store, one))),
    );
  for (const { merchantId, asset } of reported)
    for (const { id, receiver, inForce } of listDestinations(store, { merchantId, asset }))
      if (inForce === 0 && !isWanted({ merchantId, asset, receiver }))
        insertEvent(store, { id, kind: "replaced", at, statement: null, actor });
}

/** Records that the service pays to a destination, if it paid to another one before. Call it inside a transaction. */
export function recordServed(
  store: Store,
  { merchantId: merchant_id, asset, receiver }: Destination,
  { at, actor }: Period,
): void {
  if (findServed(store, { merchantId: merchant_id, asset }) === receiver) return;
  const row = { merchant_id, asset, receiver, at: at.getTime() };
  insertAudited(store, { table: "served_destination", row, action: "destination.served", actor, at });
}

/** Returns the receiver that the service pays to, as a worker last reported it; before a first change, the one that applies. */
function findServed(store: Store, of: Omit<Destination, "receiver">): string | undefined {
  return findReported(store, of) ?? findApplied(store, of)?.receiver;
}

/** Returns the receiver that a worker last reported as the one that the service pays to. */
function findReported(store: Store, { merchantId, asset }: Omit<Destination, "receiver">): string | undefined {
  const query = "select receiver from served_destination where merchant_id = ? and asset = ? order by id desc limit 1";
  const row = store.prepare(query).get(merchantId, asset) as Pick<Destination, "receiver"> | undefined;
  return row?.receiver;
}

/** A claim that waits; `appliesAt` in Unix milliseconds. */
type WaitingDestination = Destination & { id: number; appliesAt: number };

/** Returns the claims that wait, of all merchants, the earliest first. */
export function listWaiting(store: Store): WaitingDestination[] {
  return store
    .prepare(
      `select id, merchant_id as merchantId, asset, receiver, applies_at as appliesAt from destination d
      where applies_at is not null and not exists (select 1 from destination_event e where e.destination_id = d.id)
      order by applies_at, id`,
    )
    .all() as WaitingDestination[];
}

/**
 * Returns the claims whose waiting period has ended and to which the service pays. One that is only requested, or that the service
 * has left, does not displace the receiver that applies.
 */
export function listDueDestinations(store: Store, at: Date): WaitingDestination[] {
  return listWaiting(store).filter(
    ({ appliesAt, receiver, ...of }) => appliesAt <= at.getTime() && findServed(store, of) === receiver,
  );
}

/**
 * Lets the claims apply whose waiting period has ended, and returns them. Only a signer that runs and is not paused calls it:
 * until then an operator can reject a claim, whatever the clock says. Call it inside a transaction.
 */
export function applyDueDestinations(store: Store, at: Date): WaitingDestination[] {
  const due = listDueDestinations(store, at);
  for (const { id } of due) insertEvent(store, { id, kind: "applied", at, statement: null, actor: ownActor });
  return due;
}

/**
 * Lets the claim apply whose receiver a payout names, if its waiting period has ended. No report may name it: workers report changes
 * only, and a store that was rebuilt has forgotten the reports. A receiver that the service has left does not apply. Call it inside a
 * transaction.
 */
export function applyPaidDestination(store: Store, one: Destination, { at, isHeld }: Period): void {
  const waiting = findWaiting(store, one);
  if (!waiting || isHeld || (waiting.appliesAt ?? 0) > at.getTime()) return;
  if ((findReported(store, one) ?? one.receiver) !== one.receiver) return;
  insertEvent(store, { id: waiting.id, kind: "applied", at, statement: null, actor: ownActor });
}

/** Returns the claim of a receiver that waits, the newest first. */
export function findWaiting(store: Store, one: Destination): Row | undefined {
  return listDestinations(store, one).find(({ receiver, inForce }) => receiver === one.receiver && inForce === 0);
}

/** Returns the claim by which a merchant is paid now. */
export function findApplied(store: Store, of: Omit<Destination, "receiver">): Row | undefined {
  return listDestinations(store, of).find(({ inForce }) => inForce === 1);
}

function isInForce(store: Store, one: Destination): boolean {
  return findApplied(store, one)?.receiver === one.receiver;
}

/** Records what ends the waiting period of a claim, or confirms its end. Call it inside a transaction. */
export function insertEvent(
  store: Store,
  event: {
    id: number;
    kind: "approved" | "rejected" | "applied" | "replaced";
    at: Date;
    statement: string | null;
    actor: Actor;
  },
): void {
  const { id, kind, at, statement, actor } = event;
  const signer = statement === null ? null : actor.id;
  const row = { destination_id: id, kind, statement, signer, at: at.getTime() };
  const before = { table: "destination", id } as const;
  const action = `destination.${kind}`;
  if (insertAudited(store, { table: "destination_event", row, before, action, actor, at }) === undefined)
    throw new Error("the statement has decided before");
}

/**
 * Rejects later claims of a receiver of which none waits: they apply only by an approval. Call it inside a transaction.
 */
export function rejectLater(store: Store, one: Destination, by: { at: Date; statement: string; actor: Actor }): void {
  const id = insertDestination(store, one, { ...by, appliesAt: NEVER });
  insertEvent(store, { id, kind: "rejected", ...by });
}

/** Returns the statements that have decided about claims of a receiver: their texts, and who signed them. */
export function listDecisions(
  store: Store,
  { merchantId, asset, receiver }: Destination,
): { text: string; signer: string }[] {
  return store
    .prepare(
      `select e.statement, e.signer from destination d join destination_event e on e.destination_id = d.id
      where d.merchant_id = ? and d.asset = ? and d.receiver = ? and e.statement is not null`,
    )
    .all(merchantId, asset, receiver)
    .map((row) => ({ text: String(row["statement"]), signer: String(row["signer"]) }));
}

/** Returns why a merchant must not be paid to a receiver now, or undefined. */
export function findDestinationRefusal(
  store: Store,
  { merchantId, asset, receiver }: Destination,
): Extract<RefusalReason, "destination_unapproved" | "destination_waiting"> | undefined {
  if (isInForce(store, { merchantId, asset, receiver })) return undefined;
  const isKnown = listDestinations(store, { merchantId, asset }).some((one) => one.receiver === receiver);
  return isKnown ? "destination_waiting" : "destination_unapproved";
}

/** Returns when the first destination of a merchant was claimed, Unix milliseconds. */
export function findFirstClaim(store: Store, merchantId: string): number | undefined {
  const row = store.prepare("select min(claimed_at) as first from destination where merchant_id = ?").get(merchantId);
  return typeof row?.["first"] === "number" ? row["first"] : undefined;
}

/** A claim; `appliesAt` in Unix milliseconds, null if it applied at once. `inForce`: 1 if it applies or did. */
type Row = { id: number; receiver: string; appliesAt: number | null; inForce: 0 | 1 };

/** Returns the destinations of a merchant and asset that were neither rejected nor replaced, the newest claim first. */
function listDestinations(store: Store, { merchantId, asset }: Omit<Destination, "receiver">): Row[] {
  return store
    .prepare(
      `select d.id, d.receiver, d.applies_at as appliesAt, d.applies_at is null or exists (
        select 1 from destination_event e where e.destination_id = d.id) as inForce
      from destination d where d.merchant_id = ? and d.asset = ? and not exists (
        select 1 from destination_event e where e.destination_id = d.id and e.kind in ('rejected', 'replaced'))
      order by d.id desc`,
    )
    .all(merchantId, asset) as Row[];
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
