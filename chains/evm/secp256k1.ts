import { createRequire } from "node:module";
import { secp256k1 } from "@noble/curves/secp256k1";

/**
 * The three secp256k1 operations that this project needs. Points are uncompressed (65 bytes). All throw on bad input.
 */
export type Curve = {
  name: "native" | "javascript";
  /**
   * Signs a 32-byte digest with RFC 6979 nonces. `signature` is r and s, 64 bytes, with a low s; `recovery` is 0 or 1.
   */
  sign(digest: Uint8Array, key: Uint8Array): { signature: Uint8Array; recovery: number };
  /** Recovers the public key whose owner signed a 32-byte digest. `signature` is r and s, 64 bytes. */
  recover(digest: Uint8Array, signature: Uint8Array, recovery: number): Uint8Array;
  /** Derives the public key of a 32-byte private key. */
  publicKey(key: Uint8Array): Uint8Array;
};

type Bindings = {
  ecdsaSign(digest: Uint8Array, key: Uint8Array): { signature: Uint8Array; recid: number };
  publicKeyCreate(key: Uint8Array, compressed: boolean): Uint8Array;
  ecdsaRecover(signature: Uint8Array, recovery: number, digest: Uint8Array, compressed: boolean): Uint8Array;
};

const require = createRequire(import.meta.url);

/**
 * Opens the compiled bindings of libsecp256k1, or returns undefined if they were not built. It never loads the package's
 * index, which falls back to `elliptic`: that library accepted forged signatures (CVE-2025-14505).
 */
export function openNativeCurve(): Curve | undefined {
  try {
    const bindings: Bindings = require("secp256k1/bindings.js");
    return {
      name: "native",
      sign: (digest, key) => {
        const { signature, recid } = bindings.ecdsaSign(digest, key);
        return { signature, recovery: recid };
      },
      recover: (digest, signature, recovery) => bindings.ecdsaRecover(signature, recovery, digest, false),
      publicKey: (key) => bindings.publicKeyCreate(key, false),
    };
  } catch {
    return undefined;
  }
}

/** The same operations in audited JavaScript, about ten times slower. */
export const javascriptCurve: Curve = {
  name: "javascript",
  sign: (digest, key) => {
    const signed = secp256k1.sign(digest, key, { lowS: true });
    return { signature: signed.toCompactRawBytes(), recovery: signed.recovery };
  },
  recover: (digest, signature, recovery) =>
    secp256k1.Signature.fromCompact(signature).addRecoveryBit(recovery).recoverPublicKey(digest).toRawBytes(false),
  publicKey: (key) => secp256k1.getPublicKey(key, false),
};
