import { createHash, timingSafeEqual } from "node:crypto";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";

export type Login = { user: string; password: string };

/** Compares digests, so that the time taken reveals neither the length nor a prefix of the expected text. */
function same(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** Returns the user of an `Authorization: Basic` header when its password is right. */
export function findUser(header: string | undefined, login: Login): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/=]+)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  // Both are always compared: an early return would reveal whether the user name is right.
  const userRight = same(pair.slice(0, Math.max(colon, 0)), login.user);
  const passwordRight = same(pair.slice(colon + 1), login.password);
  return colon >= 0 && userRight && passwordRight ? login.user : undefined;
}

/** Wrong logins that an address may make in a window, and the length of the window, seconds. */
const WRONG_LOGINS = 10;
const WINDOW_SECONDS = 60;

/** Counts wrong logins by address. */
export type LoginThrottle = {
  /** Returns the seconds until the address may try again; 0 when it may try now. */
  secondsToWait(address: string): Promise<number>;
  /** Counts a wrong login. */
  countWrong(address: string): Promise<void>;
};

/**
 * Refuses every login of an address, even a right one, after ten wrong logins within a minute, so that a password cannot be
 * guessed. Each process counts separately. Other addresses are not affected.
 */
export function createLoginThrottle(): LoginThrottle {
  const wrong = new RateLimiterMemory({ points: WRONG_LOGINS, duration: WINDOW_SECONDS });
  return {
    async secondsToWait(address) {
      const counted = await wrong.get(address);
      if (counted === null || counted.consumedPoints < WRONG_LOGINS) return 0;
      return Math.max(1, Math.ceil(counted.msBeforeNext / 1_000));
    },
    async countWrong(address) {
      await wrong.consume(address).catch((refused: unknown) => {
        if (!(refused instanceof RateLimiterRes)) throw refused;
      });
    },
  };
}
