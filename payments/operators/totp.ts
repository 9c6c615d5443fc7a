import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/** Length of a step, seconds, and of a code, digits (RFC 6238, the values that authenticator apps use). */
const STEP_SECONDS = 30;
const DIGITS = 6;
/** Steps before and after the current one whose codes are accepted, for clocks that differ. */
const TOLERANCE = 1;
/** RFC 4648, 6. */
const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Returns a new secret of 160 bits, as RFC 4226 recommends, in base32. */
export function makeTotpSecret(): string {
  return Array.from(randomBytes(32), (byte) => BASE32[byte % 32]).join("");
}

/** Returns the code of a step (RFC 4226, 5.3, with HMAC-SHA-1). @param secret in base32 */
export function computeTotp(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac("sha1", decodeBase32(secret)).update(counter).digest();
  const offset = (hash.at(-1) ?? 0) & 0xf;
  return String((hash.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** DIGITS).padStart(DIGITS, "0");
}

/** Returns the step that a time belongs to. */
export const totpStep = (at: Date): number => Math.floor(at.getTime() / 1_000 / STEP_SECONDS);

/** Returns the step, near a time, that a code belongs to; undefined for a wrong code. */
export function findTotpStep(secret: string, code: string, at: Date): number | undefined {
  if (!/^\d{6}$/.test(code)) return undefined;
  const now = totpStep(at);
  const steps = Array.from({ length: 2 * TOLERANCE + 1 }, (_, index) => now - TOLERANCE + index);
  return steps.find((step) => timingSafeEqual(Buffer.from(computeTotp(secret, step)), Buffer.from(code)));
}

/** Returns the URI that authenticator apps read, usually from a QR code. */
export function toTotpUri(name: string, secret: string): string {
  return `otpauth://totp/Payments:${encodeURIComponent(name)}?secret=${secret}&issuer=Payments`;
}

function decodeBase32(text: string): Buffer {
  const bits = Array.from(text, (letter) => BASE32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}
