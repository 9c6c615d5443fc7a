import { createHash } from "node:crypto";

/** An entry of the audit log as it is stored. `before` and `after` are the texts of the JSON columns. */
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
 * hash of the previous entry in hex. The trigger of `audit_entry` computes the same (audit.sql).
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
