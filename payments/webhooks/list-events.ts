import {
  type EventOwner,
  type EventRow,
  findEvent,
  listEventsAfter,
  listLastEvents,
  numberEvents,
} from "../../db/queries/webhook-events.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type EventPayload, type PayloadKind, readPayloads } from "./event-payloads.ts";
import { noEvent } from "./list-deliveries.ts";

/** Events that are numbered at a time; more than a page has, so that readers of a backlog seldom number. */
const NUMBERED = 1_000;
/** How often a request for the end of the list numbers events, so that no request numbers the backlog of years. */
const ROUNDS = 3;

/** A page of an account's events. `nextCursor` continues after it, also when there are no more events yet. */
export type EventPage = { items: EventPayload[]; nextCursor: string | null; hasMore: boolean };

/**
 * Returns the events of an account and mode after a cursor, in an order that never changes: a reader that follows
 * `nextCursor` gets each event exactly once, however late its transaction commits. Without a cursor the list begins with
 * the oldest event, with the latest `limit` events, or after the newest one: the page is empty then. The cursor of a page at the
 * end continues with later events. While `hasMore` is true for such a page, events before the newest one follow its cursor; a
 * further call gets nearer to the end.
 * Refuses with `params_validation` a cursor of another account or mode, or of an event that a restored database does not have.
 */
export async function listEvents(
  { db }: { db: Db },
  args: EventOwner & {
    cursor?: string | undefined;
    start?: "beginning" | "latest" | "end" | undefined;
    limit: number;
    payload: PayloadKind;
  },
): Promise<Result<EventPage>> {
  const { accountId, mode, cursor, start, limit, payload } = args;
  const owner = { accountId, mode };
  if (cursor === undefined && (start === "latest" || start === "end"))
    return done(await listLatest(db, { ...owner, count: start === "end" ? 0 : limit, payload }));
  const after = await findPosition(db, owner, cursor);
  if (!after.ok) return after;
  await numberEvents(db, owner, NUMBERED);
  return done(await readPage(db, { ...args, after: after.value }));
}

/**
 * Returns the page after a cursor as `listEvents` does, among the events that have a position already, and gives positions to
 * none. A page with `hasMore` is what `listEvents` returns; another one may lack events. Refuses a cursor like `listEvents`.
 */
export async function listNumberedEvents(
  { db }: { db: Db },
  args: EventOwner & { cursor?: string | undefined; limit: number; payload: PayloadKind },
): Promise<Result<EventPage>> {
  const after = await findPosition(db, args, args.cursor);
  return after.ok ? done(await readPage(db, { ...args, after: after.value })) : after;
}

async function readPage(
  db: Db,
  args: EventOwner & { cursor?: string | undefined; after: number; limit: number; payload: PayloadKind },
): Promise<EventPage> {
  const { accountId, mode, cursor, after, limit, payload } = args;
  const rows = await listEventsAfter(db, { accountId, mode, after, limit: limit + 1 });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return {
    items: await readPayloads({ db }, page, payload),
    nextCursor: last ? toCursor(last) : (cursor ?? null),
    hasMore: rows.length > limit,
  };
}

/** Returns an event of an account and mode. Refuses with `event_not_found`. */
export async function findEventPayload(
  { db }: { db: Db },
  args: EventOwner & { id: string; payload: PayloadKind },
): Promise<Result<EventPayload>> {
  const row = await findEvent(db, args);
  const [found] = row ? await readPayloads({ db }, [row], args.payload) : [];
  return found ? done(found) : noEvent();
}

/** Returns the page of the `count` newest events that are committed, or of earlier ones if the backlog is long. */
async function listLatest(
  db: Db,
  { count, payload, ...owner }: EventOwner & { count: number; payload: PayloadKind },
): Promise<EventPage> {
  let hasMore = true;
  for (let round = 0; round < ROUNDS && hasMore; round += 1)
    hasMore = (await numberEvents(db, owner, NUMBERED)) === NUMBERED;
  // Positions have gaps where events have left after their retention.
  const rows = await listLastEvents(db, { ...owner, limit: Math.max(count, 1) });
  const last = rows.at(-1);
  const items = await readPayloads({ db }, count === 0 ? [] : rows, payload);
  return { items, nextCursor: last ? toCursor(last) : null, hasMore };
}

function toCursor({ id, position }: EventRow): string {
  return Buffer.from(JSON.stringify([position, id])).toString("base64url");
}

/** Returns the position of the cursor's event. The id proves that it is the same event, and of the same account. */
async function findPosition(db: Db, owner: EventOwner, cursor: string | undefined): Promise<Result<number>> {
  if (cursor === undefined) return done(0);
  const [, place, id] = /^\[(\d{1,15}),"(evt_[0-9a-f]{32})"\]$/.exec(Buffer.from(cursor, "base64url").toString()) ?? [];
  const row = id === undefined ? undefined : await findEvent(db, { ...owner, id });
  if (row && row.position === Number(place)) return done(row.position);
  return refuse("params_validation", "cursor: expected the nextCursor of the page before; begin again without one");
}
