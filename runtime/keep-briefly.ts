type Options<K> = {
  /** Names a key for the map. */
  nameOf: (key: K) => string;
  /** How long a value is returned, from the moment before it was read, milliseconds. */
  maxAgeMs: number;
  /** Values that are kept at most. A dropped one is read again. */
  most: number;
  /** A clock that is never adjusted, milliseconds. */
  monotonic: () => number;
};
type Kept<V> = { value: V; readAt: number };

/**
 * Returns a read that repeats what it has read for a short time. It keeps only what exists, so that no stranger can fill it, or
 * drop what others use, by asking for what does not exist. `forget` drops everything, also what is being read now.
 */
export function keepBriefly<D, K, V>(
  read: (from: D, key: K) => Promise<V | undefined>,
  { nameOf, maxAgeMs, most, monotonic }: Options<K>,
): { read: (from: D, key: K) => Promise<V | undefined>; forget: () => void } {
  let kept = new Map<string, Kept<V>>();
  return {
    async read(from, key) {
      const name = nameOf(key);
      const now = monotonic();
      const found = kept.get(name);
      if (found && now - found.readAt < maxAgeMs) return found.value;
      const into = kept;
      const value = await read(from, key);
      into.delete(name);
      if (value !== undefined) into.set(name, { value, readAt: now });
      // A map lists its entries in the order in which they were set, so the oldest come first.
      for (const [old, { readAt }] of into) {
        if (into.size <= most && now - readAt < maxAgeMs) break;
        into.delete(old);
      }
      return value;
    },
    forget() {
      kept = new Map();
    },
  };
}
