import { createPublicKey } from "node:crypto";
import { type Hex, keccak256, numberToHex } from "viem";
import { ChainFault } from "../../faults.ts";
import { joinSignature, recoverSigner, type SignatureParts } from "../signature.ts";
import { createSigner, type Signer } from "./signer.ts";

/** A key that a service holds. */
export type RemoteKey = {
  /** Its public key, as DER (SPKI) or PEM. */
  readPublicKey(): Promise<Buffer | string>;
  /** A DER signature over a 32-byte digest; its s may be high. */
  signDigest(digest: Buffer): Promise<Uint8Array>;
  /** What its errors mean: true when the same call may go through later. */
  isPassing(error: unknown): boolean;
};

/** The order of secp256k1. */
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * A signer over a key that a service holds. The key's address is compared with the one that is expected.
 * Throws ChainFault `wrong_key`, `signer_unavailable` or `signer_refused`.
 */
export async function createRemoteSigner(address: string, key: RemoteKey): Promise<Signer> {
  const expected = address.toLowerCase() as Hex;
  const own = addressOfPublicKey(await ask(key, () => key.readPublicKey()));
  if (own !== expected) throw new ChainFault("wrong_key", { detail: `expected the key of ${address}` });
  return createSigner(expected, async (digest) => {
    const der = await ask(key, () => key.signDigest(Buffer.from(digest.slice(2), "hex")));
    return recoverParts(digest, readDer(Buffer.from(der)), expected);
  });
}

async function ask<T>(key: RemoteKey, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    // The service's own words may hold what was signed.
    const detail = cause instanceof Error ? cause.name : "unknown error";
    throw new ChainFault(key.isPassing(cause) ? "signer_unavailable" : "signer_refused", { cause, detail });
  }
}

/** The address of a public key, in lower case. Throws ChainFault `wrong_key` for anything but a key on secp256k1. */
export function addressOfPublicKey(given: Buffer | string): Hex {
  const { crv, x, y } = readPublicKey(given);
  if (crv !== "secp256k1" || !x || !y) throw new ChainFault("wrong_key", { detail: "the key is not on secp256k1" });
  return `0x${keccak256(Buffer.concat([x, y].map((part) => Buffer.from(part, "base64url")))).slice(-40)}`;
}

function readPublicKey(given: Buffer | string) {
  try {
    const key = createPublicKey(typeof given === "string" ? given : { key: given, format: "der", type: "spki" });
    return key.export({ format: "jwk" });
  } catch (cause) {
    throw new ChainFault("wrong_key", { cause, detail: "the service gives no public key that can be read" });
  }
}

/** DER: a sequence of the integers r and s (SEC 1, C.8), each of 1 to n - 1 in its shortest form. Throws for anything else. */
export function readDer(der: Buffer): { r: bigint; s: bigint } {
  const readInteger = (at: number): { value: bigint; end: number } => {
    const length = der[at + 1] ?? 0;
    const end = at + 2 + length;
    if (der[at] !== 0x02 || length === 0 || length > 33 || end > der.length) throw malformed();
    const [first = 0, second = 0] = der.subarray(at + 2, end);
    // A set first bit is a negative number; a zero before anything else is one byte too many.
    if (first > 127 || (first === 0 && length > 1 && second < 128)) throw malformed();
    const value = BigInt(`0x${der.subarray(at + 2, end).toString("hex")}`);
    if (value === 0n || value >= N) throw malformed();
    return { value, end };
  };
  if (der[0] !== 0x30 || der[1] !== der.length - 2) throw malformed();
  const r = readInteger(2);
  const s = readInteger(r.end);
  if (s.end !== der.length) throw malformed();
  return { r: r.value, s: s.value };
}

const malformed = () => new ChainFault("signer_refused", { detail: "the signature is not DER" });

/** Low s (EIP-2), and the v with which the signature gives the address: services do not tell it. */
function recoverParts(digest: Hex, signature: { r: bigint; s: bigint }, address: Hex): SignatureParts {
  const low = signature.s > N / 2n ? N - signature.s : signature.s;
  const [r, s] = [signature.r, low].map((number) => numberToHex(number, { size: 32 })) as [Hex, Hex];
  for (const v of [27, 28]) if (recoverSigner(digest, joinSignature({ r, s, v })) === address) return { r, s, v };
  throw new ChainFault("signer_refused", { detail: "the signature is not the key's" });
}
