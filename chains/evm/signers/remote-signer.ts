import { type Hex, numberToHex } from "viem";
import { ChainError } from "../../errors.ts";
import { keccak256 } from "../../keccak256.ts";
import { callService, parsePublicKey, type RemoteKey } from "../../signers/remote-key.ts";
import { lowerCaseHex } from "../hex.ts";
import { joinSignature, recoverSigner, type SignatureParts } from "../signature.ts";
import { createSigner, type Signer } from "./signer.ts";

/** The order of secp256k1. */
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * Creates a signer for a key in a service, and checks that the key belongs to the address. Throws ChainError `wrong_key`,
 * `signer_unavailable` or `signer_refused`.
 */
export async function createRemoteSigner(address: string, key: RemoteKey): Promise<Signer> {
  const expected = lowerCaseHex(address);
  const actual = addressOfPublicKey(await callService(key, () => key.readPublicKey()));
  if (actual !== expected) throw new ChainError("wrong_key", { detail: `expected the key of ${address}` });
  return createSigner(expected, async (digest) => {
    const der = await callService(key, () => key.sign(Buffer.from(digest.slice(2), "hex")));
    return recoverParts(digest, parseDerSignature(Buffer.from(der)), expected);
  });
}

/** Returns the address of a public key, in lower case. Throws ChainError `wrong_key` if it is not a secp256k1 key. */
export function addressOfPublicKey(encoded: Buffer | string): Hex {
  const { crv, x, y } = parsePublicKey(encoded);
  if (crv !== "secp256k1" || !x || !y) throw new ChainError("wrong_key", { detail: "the key is not on secp256k1" });
  return `0x${keccak256(Buffer.concat([x, y].map((part) => Buffer.from(part, "base64url")))).slice(-40)}`;
}

/**
 * Reads a DER signature: a sequence of the integers r and s (SEC 1, C.8), each from 1 to n - 1 in its shortest form. Throws
 * ChainError `signer_refused` for anything else.
 */
export function parseDerSignature(der: Buffer): { r: bigint; s: bigint } {
  const readInteger = (at: number): { value: bigint; end: number } => {
    const length = der[at + 1] ?? 0;
    const end = at + 2 + length;
    if (der[at] !== 0x02 || length === 0 || length > 33 || end > der.length) throw malformed();
    const [first = 0, second = 0] = der.subarray(at + 2, end);
    // A set first bit means a negative number. A leading zero is only allowed before a byte with a set first bit.
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

const malformed = () => new ChainError("signer_refused", { detail: "the signature is not valid DER" });

/** Lowers s (EIP-2) and finds the v with which the signature recovers to the address. Services do not return v. */
function recoverParts(digest: Hex, signature: { r: bigint; s: bigint }, address: Hex): SignatureParts {
  const low = signature.s > N / 2n ? N - signature.s : signature.s;
  const [r, s] = [numberToHex(signature.r, { size: 32 }), numberToHex(low, { size: 32 })];
  for (const v of [27, 28]) if (recoverSigner(digest, joinSignature({ r, s, v })) === address) return { r, s, v };
  throw new ChainError("signer_refused", { detail: "the signature was made by another key" });
}
