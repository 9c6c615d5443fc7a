import { bytesToHex, type Hex, hexToBytes, isHex, numberToHex, size } from "viem";
import { keccak256 } from "../keccak256.ts";
import { javascriptCurve, openNativeCurve } from "./secp256k1.ts";

const curve = openNativeCurve() ?? javascriptCurve;

/** The secp256k1 implementation of this process. `javascript` is slow and worth a warning at start. */
export const signatureEngine = curve.name;

/** secp256k1n / 2 (EIP-2, Homestead). A signature with a higher s is malleable, and USDC refuses it. */
const HALF_N = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

export type SignatureParts = { r: Hex; s: Hex; v: number };

/** Splits a 65-byte signature. The returned v is 27 or 28. */
export function splitSignature(signature: Hex): SignatureParts {
  const v = Number.parseInt(signature.slice(-2), 16);
  return { r: `0x${signature.slice(2, 66)}`, s: `0x${signature.slice(66, 130)}`, v: v < 27 ? v + 27 : v };
}

/**
 * Checks the form of an ECDSA signature: 65 bytes, v of 27, 28, 0 or 1, low s. Returns why it is refused, or undefined if
 * it is well formed.
 */
export function validateSignature(signature: string): string | undefined {
  if (!isHex(signature) || signature.length % 2 !== 0) return "the signature is not a hex string";
  if (size(signature) !== 65) return "the signature is not 65 bytes long";
  const { s, v } = splitSignature(signature);
  if (v !== 27 && v !== 28) return "the signature's last byte is not 27, 28, 0 or 1";
  if (BigInt(s) > HALF_N) return "the signature's s is in the upper half, which tokens refuse";
  return undefined;
}

/** Returns the address that signed a 32-byte digest, in lower case, or undefined if no key can have signed it. */
export function recoverSigner(digest: Hex, signature: Hex): Hex | undefined {
  const { v } = splitSignature(signature);
  try {
    const [compact, message] = [signature.slice(2, 130), digest.slice(2)].map((hex) => Buffer.from(hex, "hex"));
    return compact && message && toAddress(curve.recover(message, compact, v - 27));
  } catch {
    return undefined;
  }
}

/** Signs a 32-byte digest with a low s. RFC 6979 nonces make the signature deterministic. */
export function signWithKey(digest: Hex, key: Hex): SignatureParts {
  const { signature, recovery } = curve.sign(hexToBytes(digest), hexToBytes(key));
  return { r: bytesToHex(signature.subarray(0, 32)), s: bytesToHex(signature.subarray(32)), v: 27 + recovery };
}

/** Returns the 65 bytes of a signature. */
export function joinSignature({ r, s, v }: SignatureParts): Hex {
  return `${r}${s.slice(2)}${numberToHex(v, { size: 1 }).slice(2)}`;
}

/** Returns the address of a private key, in lower case. */
export function addressOfKey(key: Hex): Hex {
  return toAddress(curve.publicKey(hexToBytes(key)));
}

/** Returns the address of an uncompressed public key (65 bytes). */
function toAddress(publicKey: Uint8Array): Hex {
  return `0x${keccak256(publicKey.subarray(1)).slice(-40)}`;
}
