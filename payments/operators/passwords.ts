import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";

/** Parameters of scrypt that OWASP recommends: 32 MiB per hash. */
const COST = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };
const BYTES = 32;
const SALT_BYTES = 16;

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);

/** Returns a new password of 120 random bits. */
export const makePassword = (): string => randomBytes(15).toString("base64url");

/** Hashes a password: `scrypt:` and the salt and hash in base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return write(salt, await derive(password, salt, BYTES, COST));
}

/** Returns a hash in the same form that no password has: it takes as long to compare with, and no time to make. */
export const makeUnmatchedHash = (): string => write(randomBytes(SALT_BYTES), randomBytes(BYTES));

/** Returns true for the password of a hash. */
export async function isPasswordOf(stored: string, password: string): Promise<boolean> {
  const [, salt = "", hash = ""] = stored.split(":");
  const expected = Buffer.from(hash, "base64url");
  return timingSafeEqual(await derive(password, Buffer.from(salt, "base64url"), BYTES, COST), expected);
}

const write = (salt: Buffer, hash: Buffer): string =>
  `scrypt:${salt.toString("base64url")}:${hash.toString("base64url")}`;
