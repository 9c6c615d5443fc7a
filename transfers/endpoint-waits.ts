/** How long endpoints that are behind are waited for: this many block times, and at least this many milliseconds. */
const MAX_BEHIND_BLOCKS = 10;
const MIN_WAIT_MS = 30_000;

/** Heights that the endpoints of chains have not reached, and since when each is waited for (Unix milliseconds). */
export type Waits = WeakMap<object, { at: number; height: number }>;

/** A height that is waited for at the endpoints of a chain, which `of` identifies. */
export type Wait = { waits: Waits; of: object; blockMs: number };

/**
 * Returns true when endpoints have been behind for too long. An endpoint that is a few blocks behind only delays the chain; one
 * that is stuck must not stop it. The time begins again once they have reached the height that they were waited for: this
 * process may have been told nothing of that, because other workers watch the chain in between.
 * @param heights.wanted the height to confirm
 * @param heights.reached the height that the endpoints have reached in this pass; -1 when none has
 */
export function hasWaitedLongEnough(
  deps: { now(): Date },
  { waits, of, blockMs }: Wait,
  { wanted, reached }: { wanted: number; reached: number },
): boolean {
  endWait({ waits, of }, reached);
  const now = deps.now().getTime();
  const since = waits.get(of) ?? { at: now, height: wanted };
  waits.set(of, since);
  return now - since.at >= maxBehindMs(blockMs);
}

/** Ends the wait for endpoints that have reached the height that they were waited for. */
export function endWait({ waits, of }: Pick<Wait, "waits" | "of">, reached: number): void {
  const since = waits.get(of);
  if (since && reached >= since.height) waits.delete(of);
}

/** Ends the wait for a height that no endpoint reports any more: the one that did may have invented it. */
export function endLostWait({ waits, of }: Pick<Wait, "waits" | "of">, reported: number): void {
  const since = waits.get(of);
  if (since && reported < since.height) waits.delete(of);
}

/** Returns how long an endpoint that is behind is waited for, milliseconds. */
export function maxBehindMs(blockMs: number): number {
  return Math.max(MIN_WAIT_MS, MAX_BEHIND_BLOCKS * blockMs);
}
