import { setTimeout as delay } from "node:timers/promises";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries, type JsonObject } from "../../db/queries/audit-entries.ts";
import { countPendingDeliveries } from "../../db/queries/webhook-deliveries.ts";
import { findEndpointRow } from "../../db/queries/webhook-endpoints.ts";
import { insertEndpointEvent } from "../../db/queries/webhook-events.ts";
import {
  listEventWriters,
  type ReplayedEvent,
  replayDelivery,
  replayGivenUp,
  replayPeriod,
} from "../../db/queries/webhook-replays.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { toActor } from "../merchants/decide-changes.ts";
import { readCursor, toPage } from "../pagination.ts";
import { type EndpointQuery, noEndpoint } from "./endpoint-views.ts";
import { noEvent } from "./list-deliveries.ts";
import { type EndpointDeps, refuseFlood } from "./lock-endpoint.ts";

/** Events that one call of `replayEvents` sends again. */
const PAGE = 5_000;
/** Pending deliveries of an endpoint above which an API key replays no more. */
const MAX_PENDING = 5_000;
/** Longest period of a replay by an API key. */
const MAX_DAYS = 31;
/** The priority of notices, which test events are, and how many may wait for an endpoint before another test event. */
const NOTICE_PRIORITY = 0;
const MAX_NOTICES = 10;
/** When a caller that is refused for now should repeat its call, seconds. */
const RETRY_AFTER_S = 60;
const DAY_MS = 24 * 60 * 60_000;
/** How often and how many times a replay of a period checks whether the transactions that it waits for have ended: for 5 s. */
const CHECK_MS = 50;
const CHECKS = 100;

/** Selects events to send again: those of a period (`since` inclusive, `until` exclusive), or all that were given up. */
export type Replay = { since: Date; until: Date } | { state: "given_up" };

type Caller = EndpointQuery & { actor: AuditActor };

/**
 * Sends an event of an endpoint again at once, under the same id and with a new retry schedule. Refuses with
 * `webhook_endpoint_not_found`, with `event_not_found` an event that the endpoint has not received, with `invalid_state` for
 * a disabled endpoint, and an API key with `forbidden` on an endpoint of an operator and with `rate_limited` while over 5,000
 * deliveries are pending.
 */
export async function replayEvent(
  deps: EndpointDeps,
  args: Caller & { eventId: string },
): Promise<Result<{ eventId: string }>> {
  const { eventId, endpointId } = args;
  return replay(deps, args, { eventId }, async (own, at) => {
    const refusal = args.actor.kind === "key" && (await refuseMorePending(own.db, endpointId));
    if (refusal) return refusal;
    return (await replayDelivery(own.db, { eventId, endpointId, at })) ? done({ eventId }) : noEvent();
  });
}

/**
 * Sends finished deliveries again, the oldest first, under the same event ids and with a new retry schedule: at most 5,000 in
 * one call. A period includes events that the endpoint has missed while it was disabled, also those of transactions that are
 * still open: the replay waits for them for up to 5 s. Returns the number of events of this part and the cursor of the next one.
 * Refuses like `replayEvent`, with `rate_limited` while such a transaction is open for longer, and an API key (not an operator)
 * with `params_validation` a period of more than 31 days and with `rate_limited` while over 5,000 deliveries are pending.
 */
export async function replayEvents(
  deps: EndpointDeps,
  args: Caller & { which: Replay; cursor?: string | undefined },
): Promise<Result<{ count: number; nextCursor: string | null }>> {
  const { which, endpointId } = args;
  const after = readCursor(args.cursor, "time");
  if (!after.ok) return after;
  if ("since" in which && !(await haveWritersEnded(deps)))
    return refuseForNow("events of this moment are still being written; retry later");
  return replay(deps, args, describeReplay(which), async ({ db }, at) => {
    const refusal = args.actor.kind === "key" && (await refuseLongReplay(db, endpointId, which));
    if (refusal) return refusal;
    const page = { endpointId, at, after: after.value, limit: PAGE };
    const events = "state" in which ? await replayGivenUp(db, page) : await replayPeriod(db, { ...page, ...which });
    return done({ count: events.length, nextCursor: cursorAfter(events) });
  });
}

/**
 * Waits until the transactions that are writing events now have ended. Some may have read the endpoints before the caller has
 * registered, enabled or changed this one: a period that is read earlier would miss their events for good. Returns false when
 * one of them has not ended within 5 s.
 */
async function haveWritersEnded({ db }: Pick<EndpointDeps, "db">): Promise<boolean> {
  let open = new Set(await listEventWriters(db));
  for (let check = 0; open.size > 0 && check < CHECKS; check += 1) {
    await delay(CHECK_MS);
    open = open.intersection(new Set(await listEventWriters(db)));
  }
  return open.size === 0;
}

/** Refuses a replay that would make a stolen key's calls a flood. */
async function refuseLongReplay(db: Db, endpointId: string, which: Replay): Promise<Refusal | undefined> {
  if ("since" in which && which.until.getTime() - which.since.getTime() > MAX_DAYS * DAY_MS)
    return refuse("params_validation", `from: expected a period of at most ${MAX_DAYS} days`);
  return refuseMorePending(db, endpointId);
}

async function refuseMorePending(db: Db, endpointId: string): Promise<Refusal | undefined> {
  if ((await countPendingDeliveries(db, { endpointId, limit: MAX_PENDING + 1 })) > MAX_PENDING)
    return refuseForNow(`more than ${MAX_PENDING} events wait for the webhook endpoint; retry later`);
  return undefined;
}

/** Returns the cursor of the part after a full one. */
function cursorAfter(events: readonly ReplayedEvent[]): string | null {
  const last = events.length < PAGE ? undefined : events.at(-1);
  // A page of one item of two, so that the cursor is the one of that item.
  return last ? toPage([last, last], 1, ({ at, event_id }) => [at.toISOString(), event_id]).nextCursor : null;
}

/** Runs a replay in one transaction with its audit entry. The lock of the endpoint lets one replay count after the other. */
async function replay<T extends JsonObject>(
  deps: EndpointDeps,
  args: Caller,
  described: JsonObject,
  work: (own: EndpointDeps, at: Date) => Promise<Result<T>>,
): Promise<Result<T>> {
  return inTransaction(deps.db, async (db) => {
    const row = await findEndpointRow(db, args, { lock: true });
    if (!row) return noEndpoint();
    if (row.by_operator && args.actor.kind === "key")
      return refuse("forbidden", "an operator has registered the webhook endpoint and alone can replay its events");
    if (row.disabled_at) return disabled();
    const at = deps.now();
    const replayed = await work({ ...deps, db }, at);
    if (!replayed.ok) return replayed;
    const entry = { actor: args.actor, action: "webhook_events.replayed", subject: row.id, at };
    await insertAuditEntries(db, [{ ...entry, before: null, after: { ...described, ...replayed.value } }]);
    return replayed;
  });
}

const refuseForNow = (message: string): Refusal => refuse("rate_limited", message, RETRY_AFTER_S);

const disabled = () => refuse("invalid_state", "the webhook endpoint is disabled");

function describeReplay(replay: Replay): JsonObject {
  if ("state" in replay) return { state: replay.state };
  return { since: replay.since.toISOString(), until: replay.until.toISOString() };
}

/**
 * Sends a test event to an endpoint, whatever its filters are. Returns its id; the delivery shows the response. Refuses like
 * `replayEvent`, with `rate_limited` while ten notices wait for the endpoint (notices are sent before the events of payments), and
 * an API key after 1,000 test events of the account in a day.
 */
export async function sendTestEvent(deps: EndpointDeps, args: Caller): Promise<Result<{ eventId: string }>> {
  return inTransaction(deps.db, async (db) => {
    const row = await findEndpointRow(db, args);
    if (!row) return noEndpoint();
    if (row.disabled_at) return disabled();
    const { actor } = args;
    const flood = await refuseFlood({ ...deps, db }, row, { actor, what: "test" });
    if (flood) return flood;
    const notices = { endpointId: row.id, limit: MAX_NOTICES, priority: NOTICE_PRIORITY };
    if ((await countPendingDeliveries(db, notices)) >= MAX_NOTICES)
      return refuseForNow(`${MAX_NOTICES} notices wait for the webhook endpoint; retry later`);
    const at = deps.now();
    const eventId = await insertEndpointEvent(db, {
      account_id: row.account_id,
      mode: row.mode,
      type: "webhook_endpoint.test",
      endpoint_id: row.id,
      detail: JSON.stringify({ reason: null, changed_by: toActor(actor) }),
      at,
    });
    const entry = { actor, action: "webhook_endpoint.tested", subject: row.id, before: null, after: { eventId }, at };
    await insertAuditEntries(db, [entry]);
    return done({ eventId });
  });
}
