/** True while something that was read at a time is younger than `ms`. A clock that was set back makes it old. */
export function isFresh(readAt: number, now: number, ms: number): boolean {
  return now >= readAt && now - readAt < ms;
}
