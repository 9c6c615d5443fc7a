import { setTimeout as pause } from "node:timers/promises";
import { isTransient } from "../client/http/retries.ts";
import type { Event, PaymentClient } from "../client/index.ts";

/** Time between two reads of the list while there is nothing new, milliseconds. */
const POLL_MS = 1_000;
/** Time after an error that may pass, milliseconds. */
const RETRY_MS = 2_000;
const PAGE = 200;

export type EventPayload = "full" | "thin";

/** Returns the cursor behind the newest event; undefined while there is no event at all. */
export async function findLastCursor(client: PaymentClient): Promise<string | undefined> {
  for (;;) {
    for await (const { nextCursor, hasMore } of client.events.list({ start: "end" }).pages()) {
      if (!hasMore) return nextCursor ?? undefined;
      // The service has not yet reached the end of a long list; the next call continues.
      break;
    }
  }
}

/**
 * Yields every event after a cursor in its order, and waits for later ones, until the signal is aborted. While the service is
 * unavailable, it tries again, and calls `onError` once.
 */
export async function* followEvents(
  client: PaymentClient,
  options: {
    cursor: string | undefined;
    payload: EventPayload;
    signal: AbortSignal;
    onError: (error: unknown) => void;
  },
): AsyncGenerator<Event> {
  const { payload, signal, onError } = options;
  let { cursor } = options;
  let isFailing = false;
  while (!signal.aborted) {
    try {
      const query = { payload, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
      for await (const page of client.events.list(query, { signal }).pages()) {
        isFailing = false;
        yield* page.data;
        cursor = page.nextCursor ?? undefined;
      }
      await pause(POLL_MS, undefined, { signal });
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      if (!isFailing) onError(error);
      isFailing = true;
      await pause(RETRY_MS, undefined, { signal });
    }
  }
}
