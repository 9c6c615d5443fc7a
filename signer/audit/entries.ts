import type { SQLInputValue } from "node:sqlite";
import { type AuditHead, hashEntry, type StoredEntry } from "../../runtime/audit-chain.ts";
import type { Store } from "../store.ts";

// The signer's audit log: one entry for each decision of an operator, a merchant or a rule, in the store's transaction that makes
// the decision. Payouts and deposits are not repeated there: entries seal them (signer/audit/seal-records.ts).

/**
 * Who has decided: an operator by their name, a merchant by an approval key, a worker by the name of its certificate, or the signer
 * by its own rules. `address` is the operator's public key.
 */
export type Actor = { kind: "operator" | "merchant" | "worker" | "signer"; id: string; address: string | null };

/** The signer itself, which decides by its clock and its files. */
export const ownActor: Actor = { kind: "signer", id: "signer", address: null };

/** Who runs a command on the signer's machine: the number of the system's user. */
export const machineActor = (): Actor => ({ kind: "operator", id: `uid ${process.getuid?.() ?? "?"}`, address: null });

/** The worker that has sent a request. @param name the name in its certificate, or the socket that it has opened */
export const workerActor = (name: string): Actor => ({ kind: "worker", id: name, address: null });

/** What was decided. `before` and `after` are written as JSON. */
type NewEntry = {
  actor: Actor;
  action: string;
  subject: string;
  before: object | null;
  after: object | null;
  at: Date;
};

/** The tables whose every row has an entry with the same content. `audit verify` compares them. */
export const auditedTables = [
  "destination",
  "destination_event",
  "served_destination",
  "approval_key",
  "approval_key_event",
  "cold_transfer",
  "retired_treasury",
  "limits_file",
  "stop",
] as const;
type AuditedTable = (typeof auditedTables)[number];

/**
 * Inserts a row and its entry. Returns the row's id; undefined if a row with the same unique members exists. Call it inside a
 * transaction.
 * @param of.before the id of the row that this one decides about, and its table
 */
export function insertAudited(
  store: Store,
  {
    table,
    row,
    before,
    ...entry
  }: Pick<NewEntry, "actor" | "action" | "at"> & {
    table: AuditedTable;
    row: Readonly<Record<string, SQLInputValue>>;
    before?: { table: AuditedTable; id: number };
  },
): number | undefined {
  const names = Object.keys(row);
  const { changes, lastInsertRowid } = store
    .prepare(
      `insert into ${table} (${names.join(", ")}) values (${names.map(() => "?").join(", ")}) on conflict do nothing`,
    )
    .run(...Object.values(row));
  if (changes === 0) return undefined;
  const id = Number(lastInsertRowid);
  const subject = subjectOf(table, id);
  appendEntry(store, {
    ...entry,
    subject,
    before: before === undefined ? null : readRow(store, before.table, before.id),
    after: readRow(store, table, id),
  });
  return id;
}

/** Returns the subject of the entry of a row. */
export const subjectOf = (table: AuditedTable, id: number): string => `${table}/${id}`;

function readRow(store: Store, table: AuditedTable, id: number): object | null {
  return store.prepare(`select * from ${table} where id = ?`).get(id) ?? null;
}

/**
 * Appends an entry to the log, with its day, its number within the day and its hash. An entry never goes into a day that has
 * ended, whatever the clock says. Call it inside a transaction: it throws an Error outside of one.
 */
export function appendEntry(store: Store, { actor, action, subject, before, after, at }: NewEntry): void {
  if (!store.isTransaction) throw new Error("an entry of the audit log belongs to the transaction of its change");
  const newest = findNewestEntry(store);
  const ended = store.prepare("select max(day) as day from audit_head").get()?.["day"];
  const open = typeof ended === "string" ? dayAfter(ended) : "";
  const day = [dayOf(at), newest?.day ?? "", open].reduce((a, b) => (a > b ? a : b));
  const sequence = newest?.day === day ? newest.sequence + 1 : 1;
  const entry = {
    day,
    sequence,
    at,
    actor_kind: actor.kind,
    actor_id: actor.id,
    actor_address: actor.address,
    action,
    subject,
    before: before && JSON.stringify(before),
    after: after && JSON.stringify(after),
  };
  const hash = hashEntry(entry, newest === undefined ? null : Buffer.from(newest.hash, "hex"));
  const { kind, id, address } = actor;
  store
    .prepare(`insert into audit_entry (day, sequence, at, actor_kind, actor_id, actor_address, action, subject, before, after, hash)
      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run(day, sequence, at.getTime(), kind, id, address, action, subject, entry.before, entry.after, hash);
}

/** Returns the newest entry of the log. */
export function findNewestEntry(store: Store): AuditHead | undefined {
  const row = store
    .prepare("select day, sequence, hash from audit_entry order by day desc, sequence desc limit 1")
    .get();
  return row && toHead(row);
}

/** Returns the hash of an entry in hex; undefined if the log has no such entry. */
export function findHash(store: Store, { day, sequence }: Pick<AuditHead, "day" | "sequence">): string | undefined {
  const row = store.prepare("select hash from audit_entry where day = ? and sequence = ?").get(day, sequence);
  return row && toHex(row["hash"]);
}

/** Reads the entries in the order of the chain, from after a place on. */
export function readEntries(
  store: Store,
  { after, limit }: { after: Pick<AuditHead, "day" | "sequence"> | undefined; limit: number },
): StoredEntry[] {
  const { day, sequence } = after ?? { day: "", sequence: 0 };
  return store
    .prepare("select * from audit_entry where (day, sequence) > (?, ?) order by day, sequence limit ?")
    .all(day, sequence, limit)
    .map((row) => {
      const { id: _id, at, hash, ...rest } = row;
      return { ...rest, at: new Date(Number(at)), hash: Buffer.from(toHex(hash), "hex") } as StoredEntry;
    });
}

/** Returns the UTC day of a time, YYYY-MM-DD. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

function dayAfter(day: string): string {
  const next = new Date(`${day}T00:00:00Z`);
  next.setUTCDate(next.getUTCDate() + 1);
  return dayOf(next);
}

const toHead = (row: Record<string, unknown>): AuditHead => ({
  day: String(row["day"]),
  sequence: Number(row["sequence"]),
  hash: toHex(row["hash"]),
});

const toHex = (hash: unknown): string => (hash instanceof Uint8Array ? Buffer.from(hash).toString("hex") : "");
