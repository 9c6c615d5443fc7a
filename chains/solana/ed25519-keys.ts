import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { decodeBase58, encodeBase58 } from "./base58.ts";

/**
 * A key in memory. `sign` returns the 64 bytes of an ed25519 signature over the message, which is not hashed first.
 */
export type Keypair = { address: string; sign(message: Uint8Array): Uint8Array };

/** The bytes before a 32-byte ed25519 key in PKCS #8 and in SubjectPublicKeyInfo (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

/** Opens a key pair of 64 bytes (seed, then public key) from `parseSecret`. */
export function openKeypair(secret: Uint8Array): Keypair {
  return openSeed(secret.subarray(0, 32));
}

/** Opens a key from its seed of 32 bytes. It is an OpenSSL KeyObject, which signs ten times faster than JavaScript. */
export function openSeed(seed: Uint8Array): Keypair {
  const key = readSeed(seed);
  const address = encodeBase58(publicHalf(key));
  return { address, sign: (message) => new Uint8Array(sign(null, message, key)) };
}

/** The forms of a secret key that `parseSecret` reads, for error messages. */
export const SECRET_FORMAT = "64 bytes in base58, or the array of 64 numbers that solana-keygen writes";

/**
 * Reads a secret key: base58 of 64 bytes, or the JSON array of 64 numbers that solana-keygen writes. Returns undefined if
 * the text is neither, or if the public half does not match the private half.
 */
export function parseSecret(text: string): Uint8Array | undefined {
  const secret = text.trimStart().startsWith("[") ? readNumbers(text) : decodeBase58(text.trim());
  if (secret?.length !== 64) return undefined;
  const isMatch = publicHalf(readSeed(secret.subarray(0, 32))).equals(secret.subarray(32));
  return isMatch ? secret : undefined;
}

/**
 * Returns true if the address signed the message. Like Solana's validators, the OpenSSL of Node 24 refuses points of small
 * order, for which anyone can make signatures; a test checks that it does. Never throws.
 */
export function verifySignature(address: string, message: Uint8Array, signature: Uint8Array): boolean {
  const key = decodeAddress(address);
  return key !== undefined && verifyWithKey(key, message, signature);
}

/** Like `verifySignature`, for an address that is given as the 32 bytes of its key. */
export function verifyWithKey(key: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  // One verification needs no KeyObject, which would take half as long to create as the signature to verify.
  return verify(null, message, { key: toDer(key), format: "der", type: "spki" }, signature);
}

/** Returns a function like `verifySignature` for one address, of which many signatures are verified: it opens the key once. */
export function openVerifier(address: string): (message: Uint8Array, signature: Uint8Array) => boolean {
  const bytes = decodeAddress(address);
  const key = bytes && createPublicKey({ key: toDer(bytes), format: "der", type: "spki" });
  return (message, signature) => key !== undefined && verify(null, message, key, signature);
}

const toDer = (key: Uint8Array) => Buffer.concat([PUBLIC_PREFIX, key]);

/** Returns true if the text is base58 of exactly 32 bytes. */
export function isAddress(text: string): boolean {
  return decodeAddress(text) !== undefined;
}

function decodeAddress(text: string): Uint8Array | undefined {
  // 32 bytes have 32 to 44 digits. The limit protects the decoder, whose time is quadratic in the length.
  const bytes = text.length >= 32 && text.length <= 44 ? decodeBase58(text) : undefined;
  return bytes?.length === 32 ? bytes : undefined;
}

/** Returns true if the text is base58 of exactly 64 bytes, as a transaction's signature is. */
export function isSignature(text: string): boolean {
  return text.length >= 64 && text.length <= 88 && decodeBase58(text)?.length === 64;
}

function readNumbers(text: string): Uint8Array | undefined {
  try {
    const numbers: unknown = JSON.parse(text);
    const isByte = (one: unknown) => Number.isInteger(one) && Number(one) >= 0 && Number(one) <= 255;
    return Array.isArray(numbers) && numbers.every(isByte) ? Uint8Array.from(numbers) : undefined;
  } catch {
    return undefined;
  }
}

function readSeed(seed: Uint8Array): KeyObject {
  return createPrivateKey({ key: Buffer.concat([PRIVATE_PREFIX, seed]), format: "der", type: "pkcs8" });
}

function publicHalf(key: KeyObject): Buffer {
  return createPublicKey(key).export({ format: "der", type: "spki" }).subarray(PUBLIC_PREFIX.length);
}
