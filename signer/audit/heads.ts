import type { AuditHead } from "../../runtime/audit-chain.ts";
import { writeHeadLine } from "../../runtime/audit-head-lines.ts";
import type { AuditSink } from "../../runtime/audit-sink.ts";
import type { AuditHeadRequest, AuditHeadResponse } from "../protocol.ts";
import type { SignerDeps } from "../signer-deps.ts";
import { inStoreTransaction, type Store } from "../store.ts";
import { dayOf, findHash, findNewestEntry } from "./entries.ts";
import { sealRecords } from "./seal-records.ts";

type Deps = Pick<SignerDeps, "store" | "now" | "log">;

/**
 * Ends the days of the audit log that are over, logs the head of each, and sends heads to the sink until it accepts them, the
 * oldest first.
 * @param sink undefined when none is configured: heads are kept until there is one
 */
export async function exportHeads(deps: Deps, sink: AuditSink | undefined): Promise<void> {
  for (const head of closeDays(deps.store, deps.now())) deps.log.info(head, "head of the signer's audit log");
  if (!sink) return;
  for (const head of listUnexported(deps.store)) {
    await sink(writeHeadLine("signer", head));
    deps.store
      .prepare("insert into exported_head (day, at) values (?, ?) on conflict do nothing")
      .run(head.day, deps.now().getTime());
  }
}

/** Returns the heads of all days that have ended, the oldest first. */
export function listHeads(store: Store): AuditHead[] {
  return store.prepare("select day, sequence, hash from audit_head order by day").all() as AuditHead[];
}

/**
 * Returns the newest entry, and the hash of the entry that the service knows as the newest. Seals all deposits and payouts before,
 * so that an older copy of the store that lacks only these has another newest entry, whatever payouts are signed with it.
 */
export function readAuditHead(
  { store, now }: Pick<Deps, "store" | "now">,
  known: AuditHeadRequest["known"],
): AuditHeadResponse {
  sealRecords({ store, now }, { everyMs: -Infinity });
  return { head: findNewestEntry(store) ?? null, knownHash: (known && findHash(store, known)) ?? null };
}

/**
 * Sets the ages of the oldest head that the sink has not accepted, and of the oldest entry that no head covers. The latter grows
 * also when a clock that was wrong has begun a later day: entries stay in it until it is over.
 */
export function setLogAges({ store, metrics, now }: Pick<SignerDeps, "store" | "metrics" | "now">): void {
  const ageOf = (query: string) => {
    const at = store.prepare(query).get()?.["at"];
    return typeof at === "number" ? Math.max(0, now().getTime() - at) / 1000 : 0;
  };
  metrics.signerHeadAgeSeconds.set(
    ageOf("select min(at) as at from audit_head where day not in (select day from exported_head)"),
  );
  metrics.signerEntryAgeSeconds.set(
    ageOf("select min(at) as at from audit_entry where day > coalesce((select max(day) from audit_head), '')"),
  );
}

/** Stores the head of each day before the present one that has none yet. Returns the new heads. */
function closeDays(store: Store, now: Date): AuditHead[] {
  return inStoreTransaction(store, () => {
    // SQLite takes the hash from the row with the highest sequence.
    const open = store
      .prepare(
        `select day, max(sequence) as sequence, lower(hex(hash)) as hash from audit_entry
        where day < ? and day > coalesce((select max(day) from audit_head), '') group by day order by day`,
      )
      .all(dayOf(now)) as AuditHead[];
    const insert = store.prepare("insert into audit_head (day, sequence, hash, at) values (?, ?, ?, ?)");
    for (const { day, sequence, hash } of open) insert.run(day, sequence, hash, now.getTime());
    return open;
  });
}

function listUnexported(store: Store): AuditHead[] {
  const query = `select day, sequence, hash from audit_head h
    where not exists (select 1 from exported_head e where e.day = h.day) order by day`;
  return store.prepare(query).all() as AuditHead[];
}
