import type { TimeLimit } from "./time-limit.ts";

/**
 * Returns a stream that the limit ends when the next part does not arrive in time. The time that its reader takes does not count.
 * It fails with the error that `toFailure` returns, or with the signal's reason.
 */
export function watchStream(
  body: ReadableStream<Uint8Array>,
  limit: TimeLimit,
  { signal, toFailure }: { signal: AbortSignal | undefined; toFailure: (cause: unknown) => Error },
): ReadableStream<Uint8Array> {
  const parts = body.getReader();
  limit.pause();
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      limit.restart();
      try {
        const { done, value } = await parts.read();
        limit.pause();
        if (!done) return controller.enqueue(value);
        controller.close();
      } catch (cause) {
        controller.error(signal?.aborted ? signal.reason : toFailure(cause));
      }
      limit.end();
    },
    cancel(reason: unknown) {
      limit.end();
      return parts.cancel(reason);
    },
  };
  // Nothing is read ahead.
  return new ReadableStream(source, { highWaterMark: 0 });
}
