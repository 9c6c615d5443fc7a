/** Thrown by `withTimeout`; says what took longer than how many milliseconds. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Returns the result of `work`, or throws when it takes longer than `ms` milliseconds. The work itself is not stopped, and
 * its later result is ignored.
 * @param late what the TimeoutError calls the work, or a function that returns the error to throw instead
 */
export async function withTimeout<T>(work: Promise<T>, ms: number, late: string | (() => Error)): Promise<T> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    timeout.reject(typeof late === "function" ? late() : new TimeoutError(`${late} took longer than ${ms} ms`));
  }, ms);
  try {
    return await Promise.race([work, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
