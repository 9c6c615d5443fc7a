import { isFresh } from "../cache-age.ts";

/** What an endpoint has shown, by key. */
export type KeptReadings<T> = {
  /** Returns a reading, and keeps it for longer: it is still needed. */
  find: (key: string) => T | undefined;
  /** Keeps a reading, unless there is no room. */
  keep: (key: string, reading: T) => void;
  /** Keeps a reading no longer. */
  drop: (key: string) => void;
};

/**
 * Opens a memory for readings that are repeated until an endpoint has shown all of them. While it is full, it keeps nothing
 * new: if it dropped what a repeated reading has already, that reading would never end.
 * @param limits.keptMs how long a reading is kept after its last use, milliseconds
 * @param limits.maxSize how many readings are kept
 */
export function openKeptReadings<T>({ keptMs, maxSize }: { keptMs: number; maxSize: number }): KeptReadings<T> {
  // The one that was used longest ago comes first.
  const kept = new Map<string, { reading: T; usedAt: number }>();
  const dropUnused = (now: number) => {
    for (const [key, { usedAt }] of kept) {
      if (isFresh(usedAt, now, keptMs)) return;
      kept.delete(key);
    }
  };
  return {
    find(key) {
      const now = performance.now();
      dropUnused(now);
      const found = kept.get(key);
      if (!found) return undefined;
      kept.delete(key);
      kept.set(key, { reading: found.reading, usedAt: now });
      return found.reading;
    },
    keep(key, reading) {
      const now = performance.now();
      dropUnused(now);
      if (kept.has(key) || kept.size >= maxSize) return;
      kept.set(key, { reading, usedAt: now });
    },
    drop(key) {
      kept.delete(key);
    },
  };
}
