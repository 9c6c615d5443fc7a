import { createHash } from "node:crypto";
import type { SignerDeps } from "../signer-deps.ts";
import { inStoreTransaction, type Store } from "../store.ts";
import { appendEntry, ownActor } from "./entries.ts";

/** The tables that have a row for each payment or payout. An entry of the log seals many rows at once. */
export const sealedTables = [
  "deposit",
  "lone_deposit",
  "deposit_agreement",
  "payout",
  "new_merchant_payout",
  "payout_transaction",
  "closed_marker",
] as const;
type SealedTable = (typeof sealedTables)[number];

/** The last row of a table that is sealed; the hash covers the table from its first row up to this one. */
type Seal = { last: number; hash: string };
export type Seals = Readonly<Record<SealedTable, Seal>>;

/** The action of an entry that seals rows. */
export const SEALED = "records.sealed";

const HOUR_MS = 3_600_000;
/** Rows of a table after which they are sealed earlier: hashing them holds up requests for less than 0.1 s. */
const MOST_ROWS = 10_000;

const none: Seal = { last: 0, hash: "" };

/**
 * Appends an entry with the hashes of all deposits and payouts, when rows were added and the last such entry is an hour old, or
 * after many rows.
 * @param everyMs how old the last such entry has to be, milliseconds
 */
export function sealRecords({ store, now }: Pick<SignerDeps, "store" | "now">, { everyMs = HOUR_MS } = {}): void {
  const at = now();
  const { seals, sealedAt } = findSeals(store);
  const added = sealedTables.map((table) => lastId(store, table) - seals[table].last);
  if (added.every((rows) => rows === 0)) return;
  if (at.getTime() - sealedAt < everyMs && added.every((rows) => rows < MOST_ROWS)) return;
  inStoreTransaction(store, () => {
    const after = Object.fromEntries(
      sealedTables.map((table) => [
        table,
        extendSeal(store, table, { from: seals[table], last: lastId(store, table) }),
      ]),
    );
    appendEntry(store, { actor: ownActor, action: SEALED, subject: "records", before: null, after, at });
  });
}

/** Returns the newest seals, and when they were made, Unix milliseconds. */
function findSeals(store: Store): { seals: Seals; sealedAt: number } {
  const row = store.prepare("select after, at from audit_entry where action = ? order by id desc limit 1").get(SEALED);
  return { seals: readSeals(row?.["after"]), sealedAt: Number(row?.["at"] ?? 0) };
}

/** Reads the seals of an entry; those of empty tables for anything else. */
export function readSeals(text: unknown): Seals {
  const given = typeof text === "string" ? (JSON.parse(text) as Partial<Seals>) : {};
  return Object.fromEntries(sealedTables.map((table) => [table, given[table] ?? none])) as Seals;
}

/** Returns the seal of a table up to a row: each row's JSON is hashed together with the hash up to the seal before. */
export function extendSeal(store: Store, table: SealedTable, { from, last }: { from: Seal; last: number }): Seal {
  if (last === from.last) return from;
  const hash = createHash("sha256").update(from.hash);
  const rows = store.prepare(`select * from ${table} where id > ? and id <= ? order by id`).iterate(from.last, last);
  for (const row of rows) hash.update(`\n${JSON.stringify(row)}`);
  return { last, hash: hash.digest("hex") };
}

/** Returns how many rows the tables have that grow with payments, payouts and decisions. */
export function countRows(store: Store): Readonly<Record<string, number>> {
  return Object.fromEntries([...sealedTables, "audit_entry" as const].map((table) => [table, lastId(store, table)]));
}

/** Returns the id of the newest row, which is the number of rows: none is ever deleted. */
function lastId(store: Store, table: SealedTable | "audit_entry"): number {
  return Number(store.prepare(`select coalesce(max(id), 0) as id from ${table}`).get()?.["id"]);
}
