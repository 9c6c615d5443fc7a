import { createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from "node:crypto";

/** The purpose of the derivation (HKDF's `info`): no other key can be derived from an API key by accident. */
const PURPOSE = "payment-service approval key v1";
/** What precedes the 32 bytes of an Ed25519 seed in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** An Ed25519 key pair; `publicKey` is its 32 bytes in lower-case hex. */
export type ApprovalKey = { privateKey: KeyObject; publicKey: string };

/**
 * Derives the Ed25519 key that signs approvals from an API key's text (HKDF-SHA-256 without a salt: the text holds 256
 * random bits). The database stores only the public key, so a thief of the database cannot sign.
 */
export function deriveApprovalKey(keyText: string): ApprovalKey {
  const seed = Buffer.from(hkdfSync("sha256", keyText, "", PURPOSE, 32));
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  const { x = "" } = createPublicKey(privateKey).export({ format: "jwk" });
  return { privateKey, publicKey: Buffer.from(x, "base64url").toString("hex") };
}
