import { createHash } from "node:crypto";

// The chain of an audit log: the service's, in Postgres, and the signer's, in its own store.

/** An entry of an audit log as it is stored. `before` and `after` are the texts of the JSON columns. */
export type StoredEntry = {
  /** YYYY-MM-DD, UTC. */
  day: string;
  sequence: number;
  at: Date;
  actor_kind: string;
  actor_id: string;
  actor_address: string | null;
  action: string;
  subject: string;
  before: string | null;
  after: string | null;
  hash: Buffer;
};

/**
 * Returns the SHA-256 of an entry: of a JSON array, without spaces, of its day, its sequence, its time in UTC with
 * milliseconds, the kind, id and address of the actor, the action, the subject, the texts of `before` and `after`, and the
 * hash of the previous entry in hex. Postgres' trigger of `audit_entry` computes the same (audit.sql).
 * @param previous the hash of the previous entry, also of an earlier day; null for the first entry of all
 */
export function hashEntry(entry: Omit<StoredEntry, "hash">, previous: Buffer | null): Buffer {
  const text = JSON.stringify([
    entry.day,
    entry.sequence,
    entry.at.toISOString(),
    entry.actor_kind,
    entry.actor_id,
    entry.actor_address,
    entry.action,
    entry.subject,
    entry.before,
    entry.after,
    previous?.toString("hex") ?? null,
  ]);
  return createHash("sha256").update(text).digest();
}

/** The last entry of a day that has ended, or the newest entry of all; `hash` in hex. */
export type AuditHead = { day: string; sequence: number; hash: string };

/**
 * What is wrong with an entry:
 * - `missing`: there is none with this number.
 * - `changed`: its hash does not match its content and the hash of the entry before it, so one of the two was changed,
 *   or both were reordered.
 * - `added`: it was appended to a day that had ended.
 * - `rewritten`: it is the last of its day, and its hash is not the one that was stored when the day ended.
 */
type ChainProblem = "missing" | "changed" | "added" | "rewritten";
export type ChainFinding = { day: string; sequence: number; problem: ChainProblem };
type Link = Pick<StoredEntry, "day" | "sequence" | "hash">;

/**
 * Returns a check of the chain that is fed entry after entry.
 * @param heads the last entry of each day that has ended, `hash` in hex
 * @param previous the entry before the first one that is fed; null at the beginning of the log
 */
export function createChainCheck(heads: readonly AuditHead[], previous: Link | null) {
  const unseen = new Map(heads.map((head) => [head.day, head]));
  const headOf = new Map(unseen);
  let last = previous;
  const miss = (day: string, from: number, until: number): ChainFinding[] =>
    Array.from({ length: until - from }, (_, index) => ({ day, sequence: from + index, problem: "missing" }));

  /** Returns what is missing at the end of the newest day that was fed, according to its head. */
  const endDay = (): ChainFinding[] => {
    const head = last && unseen.get(last.day);
    if (!last || !head) return [];
    unseen.delete(last.day);
    return miss(last.day, last.sequence + 1, head.sequence + 1);
  };

  return {
    add(entry: StoredEntry): ChainFinding[] {
      const isSameDay = last?.day === entry.day;
      const findings = isSameDay ? [] : endDay();
      // A whole day can be missing only when its head is known, or else the hash of the next entry shows it.
      for (const [day, head] of isSameDay ? [] : unseen)
        if (day < entry.day && (!last || day > last.day)) {
          unseen.delete(day);
          findings.push(...miss(day, 1, head.sequence + 1));
        }
      findings.push(...miss(entry.day, isSameDay && last ? last.sequence + 1 : 1, entry.sequence));
      const isNext = findings.length === 0;
      const { day, sequence } = entry;
      const head = headOf.get(day);
      // After a gap the hash of the entry before is unknown, so the entry cannot be checked.
      if (isNext && !hashEntry(entry, last?.hash ?? null).equals(entry.hash))
        findings.push({ day, sequence, problem: "changed" });
      if (head && sequence > head.sequence) findings.push({ day, sequence, problem: "added" });
      if (head?.sequence === sequence && head.hash !== entry.hash.toString("hex"))
        findings.push({ day, sequence, problem: "rewritten" });
      last = entry;
      return findings;
    },
    /** Returns what the heads show to be missing after the last entry. */
    end(): ChainFinding[] {
      const findings = endDay();
      for (const [day, head] of unseen) if (!last || day > last.day) findings.push(...miss(day, 1, head.sequence + 1));
      return findings;
    },
  };
}
