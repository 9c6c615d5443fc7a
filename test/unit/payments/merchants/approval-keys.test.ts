import { createPublicKey, sign, verify } from "node:crypto";
import { expect, test } from "vitest";
import { deriveApprovalKey } from "../../../../payments/merchants/approval-keys.ts";

const text = `svc_${"ab".repeat(32)}`;

test("an API key's text always yields the same approval key, and another text another one", () => {
  const { publicKey } = deriveApprovalKey(text);
  expect(publicKey).toBe("e6e85185076e293b36667d1b289ba8bffde4d083109e428305ffc8b278493240");
  expect(deriveApprovalKey(text).publicKey).toBe(publicKey);
  expect(deriveApprovalKey(`${text}0`).publicKey).not.toBe(publicKey);
});

test("the public key verifies what the private key has signed", () => {
  const { privateKey, publicKey } = deriveApprovalKey(text);
  const x = Buffer.from(publicKey, "hex").toString("base64url");
  const verifier = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const statement = Buffer.from("approve");
  expect(verify(null, statement, verifier, sign(null, statement, privateKey))).toBe(true);
});
