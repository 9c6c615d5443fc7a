/** How long an endpoint with a rate limit is not asked if it does not say how long, and at most, milliseconds. */
const USUAL_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** Returns the wait that an endpoint asks for, within bounds; the usual one when it is not a number. */
function boundWait(ms: number): number {
  return Number.isFinite(ms) ? Math.min(LONGEST_WAIT_MS, Math.max(0, ms)) : USUAL_WAIT_MS;
}

/** Returns the wait of a response with the status 429, milliseconds. Retry-After states it in seconds or as a date. */
export function readRetryAfter(header: string | null | undefined, now: Date = new Date()): number {
  const text = header ?? "";
  return boundWait(/^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now.getTime());
}

/** Texts of providers that limit calls, compute units or credits per time. Few of them use one code for it. */
const RATE_LIMIT =
  /rate[ -]?limit|too many requests?|request (count|rate|limit)|rps limit|compute units|throughput|quota|capacity limit|capacity exceeded|credits|requests? per (second|minute|day)|under too much load|free tier limit/i;

/** Returns true if the text of an endpoint's error says that it limits the rate of calls. */
export function isRateLimitText(text: string): boolean {
  return RATE_LIMIT.test(text);
}

/** Returns the wait that the text of such an error asks for ("retry in 10s"), milliseconds. */
export function readTextWait(text: string): number {
  const [, seconds] = /retry (?:in|after) (\d+) ?s/i.exec(text) ?? [];
  return boundWait(Number(seconds) * 1_000);
}
