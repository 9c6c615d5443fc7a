import { generateKeyPairSync, type KeyObject } from "node:crypto";
import type { Statement } from "../../signer/protocol.ts";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";

/** An Ed25519 key pair; `publicKey` is its 32 bytes in hex. */
export type ApprovalKey = { privateKey: KeyObject; publicKey: string };

/** Makes a key pair as a merchant or an operator does. */
export function makeApprovalKey(): ApprovalKey {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const { x = "" } = publicKey.export({ format: "jwk" });
  return { privateKey, publicKey: Buffer.from(x, "base64url").toString("hex") };
}

/** Signs a statement by a merchant's key, or as an operator with a name. */
export function signStatement(
  { privateKey, publicKey }: ApprovalKey,
  subject: StatementSubject,
  {
    signer = publicKey,
    deployment = "test",
    at = new Date(),
  }: { signer?: string; deployment?: string; at?: Date } = {},
): Statement {
  const text = writeStatement(subject, { deployment, at });
  return { text, signer, signature: signText(privateKey, text) };
}
