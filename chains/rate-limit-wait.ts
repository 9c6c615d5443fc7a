/** How long an endpoint with a rate limit is not asked if it does not say how long, and at most, milliseconds. */
const USUAL_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** Returns the wait that an endpoint asks for, within bounds; the usual one when it is not a number. */
export function boundWait(ms: number): number {
  return Number.isFinite(ms) ? Math.min(LONGEST_WAIT_MS, Math.max(0, ms)) : USUAL_WAIT_MS;
}

/** Returns the wait of a response with the status 429, milliseconds. Retry-After states it in seconds or as a date. */
export function readRetryAfter(header: string | null | undefined, now: Date = new Date()): number {
  const text = header ?? "";
  return boundWait(/^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now.getTime());
}
