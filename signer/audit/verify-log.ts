import { type AuditHead, createChainCheck, type StoredEntry } from "../../runtime/audit-chain.ts";
import { inReadTransaction, type Store } from "../store.ts";
import { auditedTables, readEntries, subjectOf } from "./entries.ts";
import { listHeads } from "./heads.ts";
import { extendSeal, readSeals, SEALED, type Seals, sealedTables } from "./seal-records.ts";

/** Entries that are read at once. */
const BATCH = 1_000;

/** What a verification found: the number of entries, the newest one, and what is wrong, one sentence each. */
type LogVerification = { entries: number; head: AuditHead | undefined; findings: string[] };

/**
 * Recomputes the hash of every entry, compares the ends of days with their heads, the rows of decisions with the entries that were
 * written with them, and deposits and payouts with the entries that seal them. Reads the store in one transaction, so that a signer
 * that runs may write meanwhile.
 * @param exported heads that were stored outside of the store, which also show what was rewritten as a whole
 */
export function verifyLog(store: Store, exported: readonly AuditHead[]): LogVerification {
  return inReadTransaction(store, () => verifyAll(store, exported));
}

function verifyAll(store: Store, exported: readonly AuditHead[]): LogVerification {
  const heads = [...new Map([...listHeads(store), ...exported].map((head) => [head.day, head])).values()];
  const check = createChainCheck(
    heads.sort((a, b) => (a.day < b.day ? -1 : 1)),
    null,
  );
  const result: LogVerification = { entries: 0, head: undefined, findings: [] };
  const { findings } = result;
  const logged = new Map<string, string | null>();
  let seals = readSeals(undefined);
  const describe = ({ day, sequence, problem }: ReturnType<typeof check.end>[number]) =>
    `entry ${day}/${sequence}: ${problem}`;
  for (let batch: StoredEntry[] = readEntries(store, { after: undefined, limit: BATCH }); batch.length > 0; ) {
    for (const entry of batch) {
      findings.push(...check.add(entry).map(describe));
      if (isRowSubject(entry.subject)) logged.set(entry.subject, entry.after);
      if (entry.action === SEALED) seals = compareSeals(store, { before: seals, entry, findings });
      result.entries += 1;
      result.head = { day: entry.day, sequence: entry.sequence, hash: entry.hash.toString("hex") };
    }
    batch = readEntries(store, { after: result.head, limit: BATCH });
  }
  findings.push(...check.end().map(describe), ...compareRows(store, logged));
  return result;
}

const isRowSubject = (subject: string): boolean => auditedTables.some((table) => subject.startsWith(`${table}/`));

/** Compares the rows of the audited tables with what their entries say. */
function compareRows(store: Store, logged: ReadonlyMap<string, string | null>): string[] {
  const left = new Map(logged);
  const findings = auditedTables.flatMap((table) =>
    [...store.prepare(`select * from ${table} order by id`).iterate()].flatMap((row) => {
      const subject = subjectOf(table, Number(row["id"]));
      const text = left.get(subject);
      left.delete(subject);
      if (text === undefined) return [`row ${subject}: has no entry`];
      return text === JSON.stringify(row) ? [] : [`row ${subject}: changed`];
    }),
  );
  return [...findings, ...[...left.keys()].map((subject) => `row ${subject}: missing`)];
}

/** Compares rows with the entry that seals them. Returns its seals: the next entry continues from them. */
function compareSeals(
  store: Store,
  { before, entry, findings }: { before: Seals; entry: StoredEntry; findings: string[] },
): Seals {
  const seals = readSeals(entry.after);
  for (const table of sealedTables) {
    const { last, hash } = seals[table];
    if (extendSeal(store, table, { from: before[table], last }).hash !== hash)
      findings.push(`rows ${table}/${before[table].last + 1} to ${table}/${last}: changed or missing`);
  }
  return seals;
}
