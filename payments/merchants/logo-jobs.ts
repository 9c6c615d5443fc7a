import { type Result, refuse } from "../error-codes.ts";

/** Logos that a process fetches and resizes at the same time, of all accounts and of one. Each holds up to 2 MiB. */
const LIMITS = { ofAll: 4, ofAccount: 1 };
/** A fetch may take this long, and images are resized one after the other. */
const RETRY_AFTER_S = 10;

/** Runs the job of an account, or refuses it with `rate_limited` while too many run. No job waits for another. */
export type LogoJobs = <T>(accountId: string, job: () => Promise<Result<T>>) => Promise<Result<T>>;

/** Returns the logo jobs of one process. */
export function createLogoJobs(): LogoJobs {
  const running: string[] = [];
  return async (accountId, job) => {
    const own = running.filter((other) => other === accountId).length;
    if (running.length >= LIMITS.ofAll || own >= LIMITS.ofAccount) {
      const message = `iconUrl: too many logos are being fetched; retry in ${RETRY_AFTER_S} s`;
      return refuse("rate_limited", message, RETRY_AFTER_S);
    }
    running.push(accountId);
    try {
      return await job();
    } finally {
      running.splice(running.indexOf(accountId), 1);
    }
  };
}
