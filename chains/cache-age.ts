/**
 * Returns true while a value read at `readAt` is younger than `ms`. A clock that was set back makes the value stale.
 */
export function isFresh(readAt: number, now: number, ms: number): boolean {
  return now >= readAt && now - readAt < ms;
}
