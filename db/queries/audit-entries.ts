import { sql } from "kysely";
import type { StoredEntry } from "../../runtime/audit-chain.ts";
import type { ActorKind } from "../tables/column-types.ts";
import type { Db } from "../tables.ts";

type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
/** An object as JSON writes it: amounts are strings, times are ISO 8601. */
export type JsonObject = { readonly [name: string]: JsonValue | undefined };

/** Who made a change: an API key, an operator or a worker, and the address that the request came from. */
export type AuditActor = {
  kind: ActorKind;
  id: string;
  address: string | null;
  /** The operator's request on the console that the change carries out. The entry names it in `after`. */
  request?: string;
};

/**
 * A change. `before` and `after` hold what changed of the subject, null where it did not exist. They never contain a
 * secret or data of a buyer, because rows cannot be deleted.
 */
export type AuditEntry = {
  actor: AuditActor;
  /** What was done, as `noun.verb_in_the_past`: `merchant.created`. */
  action: string;
  /** The id of what was changed. */
  subject: string;
  before: JsonObject | null;
  after: JsonObject | null;
  at: Date;
};

/**
 * Appends entries to the audit log. Call it in the transaction that makes the change, as its last statement: it holds
 * the lock of the log until the transaction ends, and all other writers wait for that.
 */
export async function insertAuditEntries(db: Db, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map(({ actor, action, subject, before, after, at }) => ({
    actor_kind: actor.kind,
    actor_id: actor.id,
    actor_address: actor.address,
    action,
    subject,
    before: before && JSON.stringify(before),
    after: writeAfter(actor, after),
    at,
  }));
  await db.insertInto("audit_entry").values(rows).execute();
}

function writeAfter({ request }: AuditActor, after: JsonObject | null): string | null {
  if (request === undefined) return after && JSON.stringify(after);
  return JSON.stringify({ ...after, request });
}

/** A place in the audit log: a UTC day and a number within it. */
export type Place = { day: string; sequence: number };

/** Reads entries in the order of the chain, from after a place on; `day` keeps to one day. */
export async function readAuditEntries(
  db: Db,
  args: { after?: Place | undefined; day?: string | undefined; limit?: number },
): Promise<StoredEntry[]> {
  const { after, day, limit } = args;
  let query = selectEntries(db).orderBy("audit_entry.day").orderBy("sequence");
  if (limit !== undefined) query = query.limit(limit);
  if (after !== undefined) query = query.where(sql<boolean>`(day, sequence) > (${after.day}::date, ${after.sequence})`);
  if (day !== undefined) query = query.where(sql<boolean>`day = ${day}::date`);
  return query.execute();
}

/** Returns the newest entry of a day before this one; undefined when the log begins later. */
export async function findEntryBefore(db: Db, day: string): Promise<(Place & { hash: Buffer }) | undefined> {
  return db
    .selectFrom("audit_entry")
    .select([dayText, "sequence", "hash"])
    .where(sql<boolean>`day < ${day}::date`)
    .orderBy("audit_entry.day", "desc")
    .orderBy("sequence", "desc")
    .limit(1)
    .executeTakeFirst();
}

/** Returns entries, newest first; an undefined filter matches everything. */
export async function listAuditEntries(
  db: Db,
  filter: { day: string | undefined; subject: string | undefined; actor: string | undefined; limit: number },
): Promise<StoredEntry[]> {
  const { day, subject, actor, limit } = filter;
  let query = selectEntries(db).orderBy("audit_entry.day", "desc").orderBy("sequence", "desc").limit(limit);
  if (day !== undefined) query = query.where(sql<boolean>`day = ${day}::date`);
  if (subject !== undefined) query = query.where("subject", "=", subject);
  if (actor !== undefined) query = query.where("actor_id", "=", actor);
  return query.execute();
}

function selectEntries(db: Db) {
  return db
    .selectFrom("audit_entry")
    .select([dayText, "sequence", "at", "actor_kind", "actor_id", "actor_address", "action", "subject", "hash"])
    .select([sql<string | null>`before::text`.as("before"), sql<string | null>`after::text`.as("after")]);
}

// pg would parse a date as midnight in the machine's time zone.
const dayText = sql<string>`audit_entry.day::text`.as("day");
