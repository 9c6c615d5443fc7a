import { setTimeout as pause } from "node:timers/promises";
import type { Event } from "../client/index.ts";
import { signEvent } from "./sign-event.ts";

/** What became of an event: an HTTP status, or the reason why there was none. */
export type Outcome = { status: number; ms: number } | { error: string; ms: number };

/** As long as the service waits for an endpoint, milliseconds. */
const TIMEOUT_MS = 15_000;
/** Delays between attempts to connect, milliseconds; the last one repeats. */
const RETRY_MS = [500, 1_000, 2_000];

/** Times that an event is sent again after a connection that ended without a response. */
const MOST_REPEATS = 3;

/** Errors of connecting: nothing has reached the receiver, which does not run yet, or restarts. */
const unreachable = new Set([
  ...["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"],
  ...["ENOTFOUND", "EAI_AGAIN"],
]);

/** Errors of a connection that ended without a response. The receiver may have read the event. */
const cut = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

export type Receiver = {
  url: string;
  secret: string;
  /** Ends a forward that waits. */
  signal: AbortSignal;
  /** Called once for an event that the receiver is not reachable for; it may throw. */
  onUnreachable: (event: Event) => void;
};

/**
 * Sends an event, signed like a webhook of the service. While the receiver is not reachable, it tries again, so that events
 * stay in order and none is lost. A receiver that ends the connection without a response gets the event three more times: it
 * restarts, or this event is what makes it crash. Any response ends it. Throws when the signal is aborted.
 */
export async function forwardEvent(event: Event, receiver: Receiver): Promise<Outcome> {
  let isNoted = false;
  let repeats = 0;
  for (let attempt = 0; ; attempt += 1) {
    const outcome = await send(event, receiver);
    if ("status" in outcome) return outcome;
    if (unreachable.has(outcome.error)) {
      if (!isNoted) receiver.onUnreachable(event);
      isNoted = true;
    } else if (!cut.has(outcome.error) || repeats === MOST_REPEATS) return outcome;
    else repeats += 1;
    await pause(RETRY_MS[attempt] ?? RETRY_MS.at(-1), undefined, { signal: receiver.signal });
  }
}

async function send(event: Event, { url, secret, signal }: Receiver): Promise<Outcome> {
  const body = JSON.stringify(event);
  const began = performance.now();
  const since = () => Math.round(performance.now() - began);
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const headers = signEvent(secret, { id: event.id, body, at: new Date() });
    const request = {
      method: "POST",
      headers,
      body,
      redirect: "manual",
      signal: AbortSignal.any([signal, timeout]),
    } as const;
    const response = await fetch(url, request);
    await response.body?.cancel();
    return { status: response.status, ms: since() };
  } catch (error) {
    signal.throwIfAborted();
    if (timeout.aborted) return { error: "no answer in 15 s", ms: since() };
    return { error: codeOf(error), ms: since() };
  }
}

/** Returns the code of an error of `fetch`, which wraps the cause. */
function codeOf(error: unknown): string {
  for (let one = error; one instanceof Error; one = one.cause)
    if ("code" in one && typeof one.code === "string") return one.code;
  return error instanceof Error ? error.message : String(error);
}
