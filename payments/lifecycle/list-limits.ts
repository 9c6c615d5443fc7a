import { type Result, refuse } from "../error-codes.ts";

/** How long a list waits while too many run, milliseconds. A page that shows several lists at the same time gets them all. */
const WAIT_MS = 3_000;
/** A list of hundreds of thousands of payments takes some seconds. */
const RETRY_AFTER_S = 5;

/**
 * Runs a list of an account, or a part of a statement, and refuses it with `rate_limited` while too many run. A list of
 * many payments uses a connection for seconds, and creations of payments need the connections too.
 * @param waitMs how long it waits for others before it is refused, milliseconds; unset: `WAIT_MS`
 */
export type RunList = <T>(accountId: string, list: () => Promise<Result<T>>, waitMs?: number) => Promise<Result<T>>;

/**
 * Returns the limits of one process: lists use half of its connections to the database, and those of one account a fifth.
 * @param connections the size of the pool
 */
export function createListLimits(connections: number): RunList {
  const ofAll = Math.max(1, Math.floor(connections / 2));
  const ofAccount = Math.max(1, Math.floor(connections / 5));
  const running: string[] = [];
  let waiting: { accountId: string; start: (isStarted: boolean) => void }[] = [];

  const canStart = (accountId: string): boolean =>
    running.length < ofAll && running.filter((other) => other === accountId).length < ofAccount;

  const awaitStart = (accountId: string, waitMs: number): Promise<boolean> => {
    const { promise, resolve: start } = Promise.withResolvers<boolean>();
    const own = { accountId, start };
    waiting.push(own);
    const timer = setTimeout(() => {
      waiting = waiting.filter((one) => one !== own);
      start(false);
    }, waitMs);
    return promise.finally(() => clearTimeout(timer));
  };
  const begin = (accountId: string): boolean => {
    running.push(accountId);
    return true;
  };
  const end = (accountId: string): void => {
    running.splice(running.indexOf(accountId), 1);
    const next = waiting.find((one) => canStart(one.accountId));
    if (!next) return;
    waiting = waiting.filter((one) => one !== next);
    next.start(begin(next.accountId));
  };
  return async (accountId, list, waitMs = WAIT_MS) => {
    const isStarted = canStart(accountId) ? begin(accountId) : await awaitStart(accountId, waitMs);
    if (!isStarted) {
      const message = `too many lists and statements are being read; retry in ${RETRY_AFTER_S} s`;
      return refuse("rate_limited", message, RETRY_AFTER_S);
    }
    try {
      return await list();
    } finally {
      end(accountId);
    }
  };
}
