import type { ChainErrorCode } from "./errors.ts";

/** How an endpoint has done since the process started. */
export type EndpointStatus = {
  name: string;
  /** Time since its last answer and since its last failure, milliseconds; undefined before the first. */
  answeredMs: number | undefined;
  failedMs: number | undefined;
  /** The code of the last failure. */
  error: ChainErrorCode | undefined;
  calls: number;
  failures: number;
  /** Its newest block when the endpoints of the chain were last compared; undefined for the only endpoint. */
  height: number | undefined;
};

/** Counts the calls of one endpoint. An error that the endpoint answers with is an answer. */
export function openTally() {
  let [answeredAt, failedAt]: (number | undefined)[] = [];
  let error: ChainErrorCode | undefined;
  let [calls, failures] = [0, 0];
  const since = (at: number | undefined) => (at === undefined ? undefined : performance.now() - at);
  return {
    answered: (): void => {
      calls += 1;
      answeredAt = performance.now();
    },
    failed: (code: ChainErrorCode): void => {
      calls += 1;
      failures += 1;
      failedAt = performance.now();
      error = code;
    },
    read: (): Omit<EndpointStatus, "name" | "height"> => ({
      answeredMs: since(answeredAt),
      failedMs: since(failedAt),
      error,
      calls,
      failures,
    }),
  };
}
